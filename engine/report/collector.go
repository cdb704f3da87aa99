// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/engine/internal/otlpexport"
)

// Collector is a collector of OpenTelemetry, to which profiles are sent.
type Collector struct {
	// MaxRequest bounds a request, before it is compressed, in bytes.
	MaxRequest int
	// Message, where it is not nil, gets what the collector says of profiles that it took.
	Message func(text string)

	endpoint *otlpexport.Endpoint
	headers  map[string]string
	client   *otlpexport.Client // nil before Connect
}

// Exported counts the bytes and the requests that were sent to a Collector.
type Exported struct{ Bytes, Requests int64 }

// NewCollector makes a Collector of a URL; see otlpexport.ParseURL, whose error it returns.
func NewCollector(url string) (*Collector, error) {
	endpoint, err := otlpexport.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return &Collector{MaxRequest: otlpexport.MaxRequest, endpoint: endpoint}, nil
}

// String returns the URL of the collector without possible secrets.
func (c *Collector) String() string { return c.endpoint.String() }

// SetHeaders sets the headers of requests, in the format of OTEL_EXPORTER_OTLP_HEADERS.
func (c *Collector) SetHeaders(text string) (err error) {
	c.headers, err = otlpexport.ParseHeaders(text)
	return err
}

// Connect prepares the connection, which the first request makes.
func (c *Collector) Connect() (err error) {
	c.client, err = otlpexport.New(c.endpoint, otlpexport.Options{Headers: c.headers})
	return err
}

// Close closes connections.
func (c *Collector) Close() { c.client.Close() }

// Forward sends an encoded ExportProfilesServiceRequest of another program, with some of its headers;
// see otlpexport.Client.Send.
func (c *Collector) Forward(ctx context.Context, request []byte, headers map[string]string) (otlpexport.Answer, error) {
	return c.client.Send(ctx, request, headers)
}

// Export sends a profile, in as many requests as it needs. The error tells what the
// collector did not take.
func (c *Collector) Export(ctx context.Context, r *Profile) (Exported, error) {
	var sent Exported
	rejected := int64(0)
	for request, err := range r.OTLPRequests(c.MaxRequest) {
		if err != nil {
			return sent, err
		}
		answer, err := c.client.Send(ctx, request, nil)
		if err != nil {
			if sent.Requests > 0 && ctx.Err() == nil {
				err = fmt.Errorf("%w; it took %d requests before", err, sent.Requests)
			}
			return sent, err
		}
		sent.Requests++
		sent.Bytes += int64(len(request))
		rejected += max(answer.Rejected, 0)
		if answer.Message != "" && c.Message != nil {
			c.Message(answer.Message)
		}
	}
	if rejected > 0 {
		return sent, fmt.Errorf("collector %s: it rejected %d profiles of %d requests", c.endpoint, rejected, sent.Requests)
	}
	return sent, nil
}
