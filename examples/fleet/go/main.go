// A GPU cluster for two teams, each with a Kubernetes and a KAI version of its own.
package main

import (
	"github.com/kai-fleet/pulumi-kai-fleet/sdk/go/kaifleet"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func main() {
	pulumi.Run(fleet)
}

func fleet(ctx *pulumi.Context) error {
	settings := config.New(ctx, "")
	version := settings.Get("mlVersion")
	if version == "" {
		version = "v0.12.23"
	}
	gpu := kaifleet.GpuShareArgs{Quota: pulumi.Float64(1)}
	platform, err := kaifleet.NewPlatform(ctx, "lab", &kaifleet.PlatformArgs{
		Cluster: kaifleet.PlatformClusterArgs{
			Name:       pulumi.String("lab"),
			Kubeconfig: settings.RequireSecret("kubeconfig"),
		},
		Gpu: kaifleet.GpuProviderArgs{Provider: kaifleet.GpuStackProviderDevicePlugin},
		Vcluster: kaifleet.VclusterSettingsArgs{
			Version: pulumi.String("v0.36.1"),
			Access: kaifleet.AccessArgs{
				Type: kaifleet.AccessTypeNodePort,
				Host: pulumi.String(settings.Require("host")),
			},
		},
		Teams: kaifleet.TeamSettingsMap{
			"ml": kaifleet.TeamSettingsArgs{
				Scheduler: kaifleet.TeamSchedulerArgs{
					Mode:    kaifleet.SchedulingModeVirtual,
					Version: pulumi.String(version),
				},
				NodePool: pulumi.StringMap{"kai-fleet/pool": pulumi.String("ml")},
				Gpus:     pulumi.Int(2),
				Queues: kaifleet.QueueSettingsMap{
					"ml": kaifleet.QueueSettingsArgs{
						Children: kaifleet.QueueSettingsMap{
							"train": kaifleet.QueueSettingsArgs{Gpu: gpu},
							"serve": kaifleet.QueueSettingsArgs{Gpu: gpu},
						},
					},
				},
			},
			"dev": kaifleet.TeamSettingsArgs{
				Scheduler: kaifleet.TeamSchedulerArgs{Mode: kaifleet.SchedulingModeDefault},
				NodePool:  pulumi.StringMap{"kai-fleet/pool": pulumi.String("dev")},
				Gpus:      pulumi.Int(1),
			},
		},
	})
	if err != nil {
		return err
	}
	ctx.Export("teams", platform.Teams)
	ctx.Export("kubeconfigs", platform.Kubeconfigs)
	return nil
}
