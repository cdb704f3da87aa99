// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/unwindd/unwindd/engine/otlpexport"
	"github.com/unwindd/unwindd/engine/report"
)

// otlpHeaders are the variables with headers for a collector, which all exporters of
// OpenTelemetry read. The first that is set counts.
var otlpHeaders = []string{"OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"}

// exporter sends a profile to a collector.
type exporter struct {
	endpoint *otlpexport.Endpoint
	client   *otlpexport.Client
}

// exporter makes the exporter of --otlp; nil where it is not set.
func (f *profileFlags) exporter() (*exporter, error) {
	if f.otlp == "" {
		return nil, nil
	}
	endpoint, err := otlpexport.ParseURL(f.otlp)
	if err != nil {
		return nil, usageError{fmt.Errorf("--otlp: %w", err)}
	}
	var o otlpexport.Options
	for _, name := range otlpHeaders {
		if text := os.Getenv(name); text != "" {
			if o.Headers, err = otlpexport.ParseHeaders(text); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			break
		}
	}
	client, err := otlpexport.New(endpoint, o)
	if err != nil {
		return nil, err
	}
	return &exporter{endpoint, client}, nil
}

func (e *exporter) close() {
	if e != nil {
		e.client.Close()
	}
}

// export sends a profile, in as many requests as it needs. The error tells what the
// collector did not take.
func (e *exporter) export(ctx context.Context, r *report.Profile) error {
	var requests, size, rejected int64
	for request, err := range r.OTLPRequests(otlpexport.MaxRequest) {
		if err != nil {
			return err
		}
		answer, err := e.client.Send(ctx, request)
		if err != nil {
			if requests > 0 && ctx.Err() == nil {
				err = fmt.Errorf("%w; it took %d requests before", err, requests)
			}
			return err
		}
		requests++
		size += int64(len(request))
		rejected += max(answer.Rejected, 0)
		if answer.Message != "" {
			messages.Printf("unwindd: collector %s: %s\n", e.endpoint, answer.Message)
		}
	}
	if rejected > 0 {
		return fmt.Errorf("collector %s: it rejected %d profiles of %d requests", e.endpoint, rejected, requests)
	}
	messages.Printf("unwindd: sent to %s: %d bytes in %d requests\n", e.endpoint, size, requests)
	return nil
}
