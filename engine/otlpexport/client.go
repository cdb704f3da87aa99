// SPDX-License-Identifier: Apache-2.0

package otlpexport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/unwindd/unwindd/internal/escape"
)

// MaxRequest is how many bytes collectors take in a request, before it is compressed:
// what gRPC takes unless it is told otherwise.
const MaxRequest = 4 << 20

const (
	defaultTimeout = 10 * time.Second // as OTEL_EXPORTER_OTLP_TIMEOUT
	maxAttempts    = 5
	firstPause     = 500 * time.Millisecond
	// maxPause is how long a collector may make us wait.
	maxPause = 30 * time.Second
	// maxMessage is how much is told of what a collector says, in bytes.
	maxMessage = 400
)

// Options say how profiles are sent.
type Options struct {
	// Headers are sent with each request: names in lower case.
	Headers map[string]string
	// Timeout is how long one attempt may take; 0: 10 seconds.
	Timeout time.Duration
}

// A Client sends profiles to one collector. It may be used by several goroutines.
type Client struct {
	endpoint *Endpoint
	timeout  time.Duration
	post     func(ctx context.Context, request []byte) ([]byte, error)
	close    func()
	pause    func(ctx context.Context, d time.Duration) error
}

// An Answer is what a collector says of a request that it took.
type Answer struct {
	// Rejected is how many profiles of the request it did not take.
	Rejected int64
	// Message says why, or warns of what was taken; printable, "" for nothing.
	Message string
}

// New is a client of a collector. Nothing is connected to before something is sent.
func New(e *Endpoint, o Options) (*Client, error) {
	c := &Client{endpoint: e, timeout: o.Timeout, pause: sleep}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	headers := map[string]string{}
	if e.authorization != "" {
		headers["authorization"] = e.authorization
	}
	for name, value := range o.Headers {
		headers[name] = value
	}
	if e.isGRPC {
		return c, c.dial(headers)
	}
	c.useHTTP(headers)
	return c, nil
}

// Close ends what is connected.
func (c *Client) Close() { c.close() }

// An attemptError is why an attempt failed.
type attemptError struct {
	err error
	// isTransient says that the next attempt may succeed, after a pause of at least
	// wait.
	isTransient bool
	wait        time.Duration
}

func (e *attemptError) Error() string { return e.err.Error() }
func (e *attemptError) Unwrap() error { return e.err }

// Send sends an encoded ExportProfilesServiceRequest, of at most MaxRequest bytes where
// the collector takes no more. It tries several times where that may help. The error
// says why the last attempt failed; it is that of the context where that ended.
func (c *Client) Send(ctx context.Context, request []byte) (Answer, error) {
	for attempt := 1; ; attempt++ {
		limited, cancel := context.WithTimeout(ctx, c.timeout)
		response, err := c.post(limited, request)
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
			err = &attemptError{err: fmt.Errorf("no answer within %v", c.timeout), isTransient: true}
		}
		wait, mayRetry := retryAfter(err, attempt)
		if !mayRetry {
			return Answer{}, c.giveUp(err, attempt, wait)
		}
		if err := c.pause(ctx, wait); err != nil {
			return Answer{}, err
		}
	}
}

// retryAfter says whether there is another attempt, and after how long.
func retryAfter(err error, attempt int) (wait time.Duration, mayRetry bool) {
	var failed *attemptError
	if !errors.As(err, &failed) || !failed.isTransient {
		return 0, false
	}
	backoff := firstPause << (attempt - 1)
	backoff += rand.N(backoff / 2) //nolint:gosec // so that many clients do not come at once
	wait = max(backoff, failed.wait)
	return wait, attempt < maxAttempts && wait <= maxPause
}

// giveUp is the error of a request that failed for good.
func (c *Client) giveUp(err error, attempts int, wait time.Duration) error {
	switch {
	case wait > maxPause:
		return fmt.Errorf("collector %s: %w; it asks to wait %v, which is more than %v", c.endpoint, err, wait.Round(time.Second), maxPause)
	case attempts > 1:
		return fmt.Errorf("collector %s: %d attempts, at last: %w", c.endpoint, attempts, err)
	}
	return fmt.Errorf("collector %s: %w", c.endpoint, err)
}

// sleep waits, or until the context ends.
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

// parse reads an ExportProfilesPartialSuccess. It returns less than 0 for what is none.
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

// said is what a collector says, as far as it is repeated.
func said(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage] + "..."
	}
	return escape.Text(text)
}
