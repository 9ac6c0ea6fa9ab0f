"""The provider plugin, as the engine starts it where `pulumi package add` put it."""

from kai_fleet.package.plugin import main

main()
