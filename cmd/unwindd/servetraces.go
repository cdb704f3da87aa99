// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/unwindd/unwindd/internal/version"
)

// lastTraces bounds the time of sending the last spans when a server ends.
const lastTraces = 2 * time.Second

// tracesProtocol returns the protocol for a collector from the variables that all exporters
// of OpenTelemetry read: "grpc" or "http/protobuf"; "" where they name no collector. An
// unknown value counts as none; wrong describes it.
func tracesProtocol(getenv func(string) string) (protocol, wrong string) {
	first := func(names ...string) (name, value string) {
		for _, name = range names {
			if value = getenv(name); value != "" {
				break
			}
		}
		return name, value
	}
	exporter := getenv("OTEL_TRACES_EXPORTER")
	_, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch {
	case strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || exporter == "none" || exporter == "" && endpoint == "":
		return "", ""
	case exporter != "" && exporter != "otlp":
		return "", "OTEL_TRACES_EXPORTER: expected otlp or none"
	}
	name, protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	switch protocol {
	case "":
		return "http/protobuf", ""
	case "grpc", "http/protobuf":
		return protocol, ""
	}
	return "", name + ": expected grpc or http/protobuf"
}

// traces makes the provider of spans, nil where none are sent. Requests never wait for a
// collector: it drops spans that are not taken. end sends the last ones, within lastTraces.
func traces(log hclog.Logger) (provider trace.TracerProvider, end func(), err error) {
	protocol, wrong := tracesProtocol(os.Getenv)
	if wrong != "" {
		log.Warn("no traces are sent", "reason", wrong)
	}
	if protocol == "" {
		return nil, func() {}, nil
	}
	ctx := context.Background()
	var exporter sdktrace.SpanExporter
	if protocol == "grpc" {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	origin, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "unwindd"), attribute.String("service.version", version.Read().Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		log.Warn("what the traces are of is not known whole", "error", err)
	}
	otel.SetErrorHandler(&traceErrors{log: log})
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(origin))
	return p, func() {
		ctx, cancel := context.WithTimeout(ctx, lastTraces)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			log.Warn("not all traces were sent", "error", err)
		}
	}, nil
}

// traceErrors logs errors of sending spans, once a minute: a collector may be gone for long.
type traceErrors struct {
	log  hclog.Logger
	last atomic.Int64
}

// Handle implements otel.ErrorHandler.
func (e *traceErrors) Handle(err error) {
	now, last := time.Now().Unix(), e.last.Load()
	if now-last >= 60 && e.last.CompareAndSwap(last, now) {
		e.log.Warn("traces are not sent", "error", err)
	}
}
