"""The calls for devices, described."""

from drf_spectacular.utils import extend_schema

from messaging.api.description.common import WITH_BODY, Decorator, query, responses
from messaging.api.outputs import devices as outputs
from push.inputs import DeviceBody, DevicesQuery, ReplaceInput
from rme.core import errors


def lists() -> Decorator:
    return extend_schema(
        operation_id="list_devices",
        summary="Query the devices, newest first",
        parameters=query(DevicesQuery),
        responses=responses({200: outputs.DevicePageOutput}, ()),
    )


def registers() -> Decorator:
    return extend_schema(
        operation_id="register_devices",
        summary="Register a device, or up to 500",
        description="A token that is registered answers 200: it is the same device, active again, "
        "of the contact that is named now.",
        request={"application/json": DeviceBody},
        responses=responses(
            {200: outputs.DeviceOutput, 201: outputs.DeviceRegisteredOutput},
            (*WITH_BODY, errors.NotFound),
        ),
    )


def removes() -> Decorator:
    return extend_schema(
        operation_id="remove_device",
        summary="Forget a device",
        responses=responses({204: None}, (errors.NotFound,)),
    )


def replaces() -> Decorator:
    return extend_schema(
        operation_id="replace_device_token",
        summary="Give a device its new token",
        description="What a browser tells by `pushsubscriptionchange`, or an app when its token "
        "was renewed. The device is active again.",
        request={"application/json": ReplaceInput},
        responses=responses({200: outputs.DeviceOutput}, (*WITH_BODY, errors.NotFound)),
    )


def shows_key() -> Decorator:
    return extend_schema(
        operation_id="show_vapid_key",
        summary="Give the key that browsers subscribe with",
        responses=responses({200: outputs.VapidKeyOutput}, ()),
    )
