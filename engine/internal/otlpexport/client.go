// SPDX-License-Identifier: Apache-2.0

package otlpexport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/unwindd/unwindd/internal/escape"
)

// MaxRequest bounds a request, before it is compressed, in bytes: it is gRPC's default.
const MaxRequest = 4 << 20

const (
	defaultTimeout = 10 * time.Second // as OTEL_EXPORTER_OTLP_TIMEOUT
	maxAttempts    = 5
	firstPause     = 500 * time.Millisecond
	// maxPause bounds the pause that a collector may request.
	maxPause = 30 * time.Second
	// maxMessage bounds the text of a collector that is repeated, in bytes.
	maxMessage = 400
)

// Options sets how profiles are sent.
type Options struct {
	// Headers are sent with each request; their names are in lower case.
	Headers map[string]string
	// Timeout bounds one attempt; 0 for 10 seconds.
	Timeout time.Duration
}

// Client sends profiles to one collector. It may be used concurrently.
type Client struct {
	endpoint *Endpoint
	timeout  time.Duration
	headers  map[string]string // of each request
	post     func(ctx context.Context, request []byte, headers map[string]string) ([]byte, error)
	close    func()
	pause    func(ctx context.Context, d time.Duration) error
}

// Answer is a collector's answer to a request that it accepted.
type Answer struct {
	// Rejected is the number of profiles of the request that it did not accept.
	Rejected int64
	// Message is the reason, or a warning about accepted profiles; it is printable, and ""
	// if there is none.
	Message string
}

// New makes a client of a collector. It connects when the first request is sent.
func New(e *Endpoint, o Options) (*Client, error) {
	c := &Client{endpoint: e, timeout: o.Timeout, pause: sleep, headers: map[string]string{}}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	if e.authorization != "" {
		c.headers["authorization"] = e.authorization
	}
	maps.Copy(c.headers, o.Headers)
	if e.isGRPC {
		return c, c.dial()
	}
	c.useHTTP()
	return c, nil
}

// Close closes connections.
func (c *Client) Close() { c.close() }

// Failure is why a collector did not take a request.
type Failure struct {
	err error
	// IsTransient means that the next attempt may succeed, after a pause of at least Wait.
	IsTransient bool
	Wait        time.Duration
	// IsTooLarge means that it may take a smaller request, IsInvalid that it will never take this one.
	IsTooLarge, IsInvalid bool
}

// Error implements error.
func (e *Failure) Error() string { return e.err.Error() }

// Unwrap returns the error that it is.
func (e *Failure) Unwrap() error { return e.err }

// Send sends an encoded ExportProfilesServiceRequest; by default collectors accept at most
// MaxRequest bytes. More headers, whose names are in lower case, go with it unless Options has
// them. It makes
// several attempts if the error is transient and the context's deadline leaves time. The error is
// a Failure, that of the context if that ended, or of an answer that is none.
func (c *Client) Send(ctx context.Context, request []byte, more map[string]string) (Answer, error) {
	headers := make(map[string]string, len(more)+len(c.headers))
	maps.Copy(headers, more)
	maps.Copy(headers, c.headers)
	for attempt := 1; ; attempt++ {
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		response, err := c.post(limited, request, headers)
		isLate := limited.Err() != nil
		cancel()
		if err == nil {
			answer, err := parseResponse(response)
			if err != nil {
				return answer, fmt.Errorf("collector %s: %w", c.endpoint, err)
			}
			return answer, nil
		}
		if ctx.Err() != nil {
			return Answer{}, ctx.Err()
		}
		if isLate {
			err = &Failure{err: fmt.Errorf("no answer within %v", c.timeout), IsTransient: true}
		}
		wait, mayRetry := retryAfter(err, attempt)
		if deadline, ok := ctx.Deadline(); !mayRetry || ok && time.Until(deadline) < wait {
			return Answer{}, c.giveUp(err, attempt, wait)
		}
		if err := c.pause(ctx, wait); err != nil {
			return Answer{}, err
		}
	}
}

// retryAfter reports whether there is another attempt, and after how long.
func retryAfter(err error, attempt int) (wait time.Duration, mayRetry bool) {
	var failed *Failure
	if !errors.As(err, &failed) || !failed.IsTransient {
		return 0, false
	}
	backoff := firstPause << (attempt - 1)
	backoff += rand.N(backoff / 2) //nolint:gosec // spreads the requests of many clients
	wait = max(backoff, failed.Wait)
	return wait, attempt < maxAttempts && wait <= maxPause
}

// giveUp returns the error of a request that failed for good.
func (c *Client) giveUp(err error, attempts int, wait time.Duration) error {
	switch {
	case wait > maxPause:
		return fmt.Errorf("collector %s: %w; it asks to wait %v, which is more than %v", c.endpoint, err, wait.Round(time.Second), maxPause)
	case attempts > 1:
		return fmt.Errorf("collector %s: %d attempts, at last: %w", c.endpoint, attempts, err)
	}
	return fmt.Errorf("collector %s: %w", c.endpoint, err)
}

// sleep waits for a time, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// The fields of ExportProfilesServiceResponse and of ExportProfilesPartialSuccess
// (opentelemetry/proto/collector/profiles/v1development/profiles_service.proto).
const (
	responsePartialSuccess protowire.Number = 1
	partialRejected        protowire.Number = 1
	partialMessage         protowire.Number = 2
)

// parseResponse reads an ExportProfilesServiceResponse.
func parseResponse(response []byte) (a Answer, err error) {
	wrong := func(n int) error {
		return fmt.Errorf("its answer is no ExportProfilesServiceResponse: %w", protowire.ParseError(n))
	}
	for len(response) > 0 {
		number, kind, n := protowire.ConsumeField(response)
		if n < 0 {
			return a, wrong(n)
		}
		field := response[:n]
		response = response[n:]
		if number == responsePartialSuccess && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(field)
			partial, _ := protowire.ConsumeBytes(field[tag:])
			if n := a.parse(partial); n < 0 {
				return a, wrong(n)
			}
		}
	}
	return a, nil
}

// parse reads an ExportProfilesPartialSuccess. It returns less than 0 if that is invalid.
func (a *Answer) parse(partial []byte) int {
	for len(partial) > 0 {
		number, kind, n := protowire.ConsumeField(partial)
		if n < 0 {
			return n
		}
		field := partial[:n]
		partial = partial[n:]
		_, _, tag := protowire.ConsumeTag(field)
		switch {
		case number == partialRejected && kind == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(field[tag:])
			a.Rejected = int64(v) //nolint:gosec // as protocol buffers encode int64
		case number == partialMessage && kind == protowire.BytesType:
			text, _ := protowire.ConsumeBytes(field[tag:])
			a.Message = said(string(text))
		}
	}
	return 0
}

// said returns the part of a collector's text that is repeated in messages.
func said(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage] + "..."
	}
	return escape.Text(text)
}
