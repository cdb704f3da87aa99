// SPDX-License-Identifier: Apache-2.0

// Package collector runs OpenTelemetry's collector in this process, with its receivers and exporters
// of OTLP, and an exporter that keeps what it is given.
package collector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// Sink is an exporter, "keeper", that keeps profiles.
type Sink struct {
	component.StartFunc
	component.ShutdownFunc
	xconsumer.Profiles

	mu   sync.Mutex
	kept [][]byte // as the collector's own library encodes it
}

// NewSink makes a Sink.
func NewSink() (*Sink, error) {
	k := &Sink{}
	var err error
	k.Profiles, err = xconsumer.NewProfiles(func(_ context.Context, p pprofile.Profiles) error {
		b, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.kept = append(k.kept, b)
		return err
	})
	return k, err
}

// Take returns everything that came since the last time.
func (k *Sink) Take() (list []*profiles.ProfilesData, err error) {
	k.mu.Lock()
	kept := k.kept
	k.kept = nil
	k.mu.Unlock()
	for _, b := range kept {
		d := &profiles.ProfilesData{}
		if err := proto.Unmarshal(b, d); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

func (k *Sink) factory() exporter.Factory {
	return xexporter.NewFactory(component.MustNewType("keeper"), func() component.Config { return &struct{}{} },
		xexporter.WithProfiles(func(context.Context, exporter.Settings, component.Config) (xexporter.Profiles, error) { return k, nil },
			component.StabilityLevelDevelopment))
}

// Collector is a running collector.
type Collector struct {
	collector *otelcol.Collector
	ended     chan error
}

// Start starts a collector with a configuration in YAML, and a Sink where it is not nil.
func Start(configuration string, k *Sink) (*Collector, error) {
	if err := featuregate.GlobalRegistry().Set("service.profilesSupport", true); err != nil {
		return nil, err
	}
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		Factories: func() (otelcol.Factories, error) {
			receivers, exporters := map[component.Type]receiver.Factory{}, map[component.Type]exporter.Factory{}
			r := otlpreceiver.NewFactory()
			receivers[r.Type()] = r
			for _, e := range []exporter.Factory{otlpexporter.NewFactory(), otlphttpexporter.NewFactory()} {
				exporters[e.Type()] = e
			}
			if k != nil {
				e := k.factory()
				exporters[e.Type()] = e
			}
			return otelcol.Factories{
				Receivers: receivers, Exporters: exporters, Telemetry: telemetry.NewFactory(func() component.Config { return &struct{}{} }),
			}, nil
		},
		DisableGracefulShutdown: true, SkipSettingGRPCLogger: true,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()}, URIs: []string{"yaml:\n" + configuration},
		}},
	})
	if err != nil {
		return nil, err
	}
	c := &Collector{collector, make(chan error, 1)}
	go func() { c.ended <- collector.Run(context.Background()) }()
	for collector.GetState() != otelcol.StateRunning {
		select {
		case err := <-c.ended:
			return nil, errors.Join(errors.New("the collector ended"), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return c, nil
}

// End ends the collector.
func (c *Collector) End() error {
	c.collector.Shutdown()
	return <-c.ended
}

// FreeAddress returns an address of this machine that is free.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Keeping returns the configuration of a collector that keeps what comes at two addresses, with requests of
// so many MiB.
func Keeping(grpc, http string, mib int) string {
	return fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q, max_recv_msg_size_mib: %d}, http: {endpoint: %q}}}}
exporters: {keeper: }
service: {pipelines: {profiles: {receivers: [otlp], exporters: [keeper]}}}
`, grpc, mib, http)
}
