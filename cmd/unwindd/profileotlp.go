// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/unwindd/unwindd/engine/report"
)

// otlpHeaders are the variables with headers for a collector, which all exporters of
// OpenTelemetry read. The first that is set counts.
var otlpHeaders = []string{"OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"}

// collector returns the collector of --otlp; nil where it is not set.
func (f *profileFlags) collector() (*report.Collector, error) {
	if f.otlp == "" {
		return nil, nil
	}
	c, err := newCollector("--otlp", f.otlp)
	if err != nil {
		return nil, err
	}
	c.Message = func(text string) { messages.Printf("unwindd: collector %s: %s\n", c, text) }
	return c, nil
}

// newCollector makes a collector of the URL of a flag, with the headers of the environment.
func newCollector(flag, url string) (*report.Collector, error) {
	c, err := report.NewCollector(url)
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	for _, name := range otlpHeaders {
		if text := os.Getenv(name); text != "" {
			if err := c.SetHeaders(text); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			break
		}
	}
	return c, c.Connect()
}

// exportTo sends a profile to a collector.
func exportTo(ctx context.Context, c *report.Collector, r *report.Profile) error {
	sent, err := c.Export(ctx, r)
	if err != nil {
		return err
	}
	messages.Printf("unwindd: sent to %s: %d bytes in %d requests\n", c, sent.Bytes, sent.Requests)
	return nil
}
