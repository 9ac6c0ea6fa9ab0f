"""A Pulumi plugin that knows its version and nothing else; run as `FILE VERSION ENGINE`."""

import sys
from concurrent.futures import ThreadPoolExecutor

import grpc
from pulumi.runtime.proto.plugin_pb2 import PluginInfo
from pulumi.runtime.proto.provider_pb2_grpc import (
    ResourceProviderServicer,
    add_ResourceProviderServicer_to_server,
)


class Plugin(ResourceProviderServicer):
    def GetPluginInfo(self, request, context):  # noqa: N802 - the name is gRPC's
        return PluginInfo(version=sys.argv[1])


server = grpc.server(ThreadPoolExecutor(1))
add_ResourceProviderServicer_to_server(Plugin(), server)
print(server.add_insecure_port("127.0.0.1:0"), flush=True)
server.start()
server.wait_for_termination()
