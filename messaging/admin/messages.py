"""Addresses of messages in the admin, which lead to their pages in the console."""

from django.contrib import admin

from messaging.admin.console_lists import InConsole
from messaging.models import Message
from rme.tenants.access.roles import Permission


@admin.register(Message)
class MessageAdmin(InConsole):
    read_permission: Permission = Permission.SEE_MESSAGES
    write_permission: Permission = Permission.OPERATE
    console_list = "messages"
    console_page = "message"
