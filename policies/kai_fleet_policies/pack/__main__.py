"""The policy pack as the Pulumi engine runs it.

Nothing may import this module: a policy pack serves the engine and never returns (P5).
"""

from pulumi.runtime.proto import analyzer_pb2_grpc

from kai_fleet.provider.process import serve
from kai_fleet_policies.pack.analyzer import Analyzer

serve(Analyzer(), analyzer_pb2_grpc.add_AnalyzerServicer_to_server, workers=4)
