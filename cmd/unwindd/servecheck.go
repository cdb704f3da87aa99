// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// checkTime bounds the time of the answer to --check.
const checkTime = 4 * time.Second

// checkServer asks the server with these flags whether it takes requests, for containers
// that have no other executable.
func (f *serveFlags) checkServer(ctx context.Context) error {
	addresses := f.listen
	if len(addresses) == 0 {
		addresses = []string{"unix:" + socketPath()}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	var wrong []error
	for _, a := range addresses {
		if err := f.checkAt(ctx, a); err != nil {
			wrong = append(wrong, fmt.Errorf("--check: %s: %w", a, err))
		}
	}
	return errors.Join(wrong...)
}

// checkAt asks the server at one address.
func (f *serveFlags) checkAt(ctx context.Context, address string) error {
	network, scheme := "tcp", "http"
	path, isUnix := strings.CutPrefix(address, "unix:")
	if isUnix {
		network, address = "unix", path
	} else if host, port, err := net.SplitHostPort(address); err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
		address = net.JoinHostPort("localhost", port)
	}
	if f.certificate != "" {
		scheme = "https"
	}
	var d net.Dialer
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, network, address) },
		// It is this machine's server: no secrets are exchanged.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as said
	}}
	defer client.CloseIdleConnections()
	host := address
	if isUnix {
		host = "localhost"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host+"/healthz", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", answer.Status)
	}
	return nil
}
