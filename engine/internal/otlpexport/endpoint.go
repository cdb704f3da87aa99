// SPDX-License-Identifier: Apache-2.0

package otlpexport

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// The ports and the path of OTLP (its specification, "OTLP/gRPC Default Port",
// "OTLP/HTTP Default Port", "OTLP/HTTP Request").
const (
	grpcPort = "4317"
	httpPort = "4318"
	httpPath = "/v1development/profiles"
)

// Endpoint is the address at which a collector accepts profiles.
type Endpoint struct {
	isGRPC, isSecure bool
	host             string   // with its port
	url              *url.URL // of HTTP, without user and password
	authorization    string   // "" if there is none
}

// errURL is the error for an invalid URL. It does not repeat the text, which may have a password.
var errURL = errors.New("expected the URL of a collector: grpc://HOST:PORT, grpcs://HOST:PORT, http://HOST:PORT or https://HOST:PORT")

// ParseURL reads the URL of a collector. grpc:// is gRPC, and grpcs:// is gRPC over TLS.
// http:// and https:// are HTTP, except that port 4317 without a path is gRPC. The default path
// of HTTP is /v1development/profiles. The default port is 4317 for grpc:// and grpcs://, 4318
// for http:// and 443 for https://. A user's name and password are sent as basic authentication.
func ParseURL(text string) (*Endpoint, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || u.Fragment != "" {
		return nil, errURL
	}
	e := &Endpoint{isSecure: strings.HasSuffix(u.Scheme, "s")}
	hasPath := strings.Trim(u.Path, "/") != ""
	usual := grpcPort
	switch u.Scheme {
	case "grpc", "grpcs":
		e.isGRPC = true
		if hasPath || u.RawQuery != "" {
			return nil, fmt.Errorf("a %s URL with a path or a query: expected only a host and a port", u.Scheme)
		}
	case "http", "https":
		e.isGRPC = u.Port() == grpcPort && !hasPath && u.RawQuery == ""
		if usual = httpPort; e.isSecure {
			usual = "443"
		}
	default:
		return nil, errURL
	}
	port := u.Port()
	if port == "" {
		port = usual
	}
	e.host = net.JoinHostPort(u.Hostname(), port)
	if !hasPath {
		u.Path, u.RawPath = httpPath, ""
	}
	if u.User != nil {
		password, _ := u.User.Password()
		e.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	u.User, u.Host = nil, e.host
	e.url = u
	return e, nil
}

// String returns the endpoint without possible secrets: a user's name, a password, a query.
func (e *Endpoint) String() string {
	scheme := "http"
	if e.isGRPC {
		scheme = "grpc"
	}
	if e.isSecure {
		scheme += "s"
	}
	if e.isGRPC {
		return scheme + "://" + e.host
	}
	return scheme + "://" + e.host + e.url.EscapedPath()
}

// ParseHeaders reads headers in the format of the variable OTEL_EXPORTER_OTLP_HEADERS:
// name=value, separated by commas, values percent-encoded. Its errors have no values.
func ParseHeaders(text string) (map[string]string, error) {
	headers := map[string]string{}
	for i, one := range strings.Split(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		name, value, ok := strings.Cut(one, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("header %d: expected NAME=VALUE", i+1)
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("header %d, %s: its value is not percent-encoded text", i+1, name)
		}
		headers[name] = value
	}
	return headers, nil
}
