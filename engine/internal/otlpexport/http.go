// SPDX-License-Identifier: Apache-2.0

package otlpexport

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	protobufType = "application/x-protobuf"
	// maxResponse bounds the part of an answer that is read, in bytes.
	maxResponse = 64 << 10
)

// useHTTP prepares to send over HTTP.
func (c *Client) useHTTP() {
	transport := &http.Transport{
		Proxy: proxy, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}
	client := &http.Client{
		Transport: transport,
		// Headers may be secrets for this collector alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.close = transport.CloseIdleConnections
	c.post = func(ctx context.Context, request []byte, headers map[string]string) ([]byte, error) {
		r, err := c.newRequest(ctx, request, headers)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(r)
		if err != nil {
			var inner *url.Error // whose text has the URL
			if errors.As(err, &inner) {
				err = inner.Err
			}
			return nil, &Failure{err: err, IsTransient: isConnection(err)}
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
		if err != nil {
			return nil, &Failure{err: fmt.Errorf("%s, but its answer was cut: %w", response.Status, err), IsTransient: true}
		}
		return readAnswer(response, body)
	}
}

// proxy returns the proxy of the environment. Its error does not repeat the URL, unlike that of
// net/http: the URL may have a password.
func proxy(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, errProxy
	}
	return u, nil
}

var errProxy = errors.New("the proxy of HTTP_PROXY or HTTPS_PROXY is not a URL")

// isConnection reports whether an error is of the connection, so that another attempt may
// succeed.
func isConnection(err error) bool {
	var name *net.DNSError
	if errors.As(err, &name) && name.IsNotFound {
		return false
	}
	var operation *net.OpError
	// net/http exports no errors for a connection that ended before it was used.
	return errors.As(err, &operation) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.Contains(err.Error(), "http: server closed ")
}

// newRequest makes a compressed request.
func (c *Client) newRequest(ctx context.Context, request []byte, headers map[string]string) (*http.Request, error) {
	var body bytes.Buffer
	z, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(request); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint.url.String(), &body)
	if err != nil {
		return nil, errURL
	}
	r.Header.Set("User-Agent", userAgent)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", protobufType)
	r.Header.Set("Content-Encoding", "gzip")
	return r, nil
}

// readAnswer returns the body of a successful answer, or an error if it is none (the
// specification of OTLP, "OTLP/HTTP Response").
func readAnswer(response *http.Response, body []byte) ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch code := response.StatusCode; {
	case code >= 300 && code < 400:
		return nil, fmt.Errorf("%s: it redirects, which is not followed", said(response.Status))
	case code != http.StatusOK:
		return nil, failure(response, kind, body)
	case len(body) > maxResponse:
		return nil, fmt.Errorf("its answer has more than %d bytes", maxResponse)
	case len(body) > 0 && kind != protobufType:
		// Other servers may answer 200 to any request.
		return nil, fmt.Errorf("its answer is %s, expected %s: it may be no collector", said(strconv.Quote(kind)), protobufType)
	}
	return body, nil
}

// failure returns why a collector accepted nothing.
func failure(response *http.Response, kind string, body []byte) error {
	err := fmt.Errorf("%s", said(response.Status))
	if text := failureText(kind, body); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	failed := &Failure{err: err}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		failed.IsTransient = true
		failed.Wait = parseRetryAfter(response.Header.Get("Retry-After"), time.Now())
	case http.StatusRequestEntityTooLarge:
		failed.IsTooLarge = true
	case http.StatusBadRequest, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		failed.IsInvalid = true
	}
	return failed
}

// failureText returns the collector's text about its failure.
func failureText(kind string, body []byte) string {
	switch {
	case kind == protobufType:
		var s status.Status
		if proto.Unmarshal(body, &s) == nil {
			return said(s.Message)
		}
		return ""
	case kind == "application/json" || strings.HasPrefix(kind, "text/plain"):
		return said(strings.TrimSpace(string(body)))
	}
	return ""
}

// parseRetryAfter returns the pause that a Retry-After sets, by seconds or a date (RFC 9110,
// 10.2.3); 0 if it has neither.
func parseRetryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second //nolint:gosec // 31 bits
	}
	if t, err := http.ParseTime(text); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}
