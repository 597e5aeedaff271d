"""MJML to HTML, with CSS put inline."""

from messaging.content.rendering.mjml.compiler import compile_mjml

__all__ = ["compile_mjml"]
