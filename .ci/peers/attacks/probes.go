// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Requests of which the server has to do one thing, and no other.

// probe is a request, and the status that it has to have.
type probe struct {
	name, request string
	want          []int // 0: no answer at all
	closes        bool  // the connection may not be used again
}

// probed sends each request on a connection of its own, some at once.
func probed(list func(*attacker) []probe) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		all := list(a)
		errs := make([]error, len(all))
		var wait sync.WaitGroup
		places := make(chan struct{}, 4)
		for i, p := range all {
			wait.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				if err := a.probe(ctx, &p); err != nil {
					errs[i] = fmt.Errorf("%s: %w", p.name, err)
				}
			})
		}
		wait.Wait()
		return errors.Join(errs...)
	}
}

// hasEnded reports whether a context has ended, which is no error here.
func hasEnded(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// probe sends a request, again where the server is busy or does not answer in time.
func (a *attacker) probe(ctx context.Context, p *probe) error {
	for try := time.Second; ; try *= 2 {
		statuses, bodies := a.answers(ctx, p, try)
		first, isOver := 0, hasEnded(ctx)
		if len(statuses) > 0 {
			first = statuses[0]
		}
		switch {
		case p.closes && len(statuses) > 1:
			return fmt.Errorf("answers %v on one connection, expected one", statuses)
		case bytes.Contains(bodies, []byte("root:x:0")):
			return fmt.Errorf("the answer has a file of the server: %.100q", bodies)
		case isOver || slices.Contains(p.want, first):
			return nil
		case first != 0 && first != http.StatusTooManyRequests:
			return fmt.Errorf("status %d, expected %v: %.200q", first, p.want, bodies)
		}
		pause(ctx, 200*time.Millisecond)
	}
}

func (a *attacker) answers(ctx context.Context, p *probe, patience time.Duration) (statuses []int, bodies []byte) {
	c, err := a.dial(ctx)
	if err != nil {
		return nil, nil // it lets no caller in at the moment
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, p.request); err != nil {
		return nil, nil
	}
	return answersOf(bufio.NewReader(c))
}

// answersOf reads answers until there are no more, for a moment.
func answersOf(r *bufio.Reader) (statuses []int, bodies []byte) {
	for len(statuses) < 3 {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses, bodies
		}
		statuses = append(statuses, answer.StatusCode)
		b, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		bodies = append(bodies, b...)
		if err != nil || answer.Close {
			return statuses, bodies
		}
	}
	return statuses, bodies
}

const (
	badRequest = http.StatusBadRequest
	forbidden  = http.StatusForbidden
	notFound   = http.StatusNotFound
)

// framings are requests whose ends two readers can see at different places.
func framings(a *attacker) []probe {
	smuggled := "0\r\n\r\n" + a.head("GET", "/metrics", "\r\n")
	say := func(headers, body string) string { return a.head("POST", "/v1/stack", headers+"\r\n") + body }
	any400 := []int{400, 401, 403, 404, 411, 413, 422, 501, 0}
	return []probe{
		{"CL with TE", say("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", smuggled), any400, true},
		{"TE with CL", say("Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", smuggled), any400, true},
		{"two CL", say("Content-Length: 6\r\nContent-Length: 5\r\n", smuggled), []int{400}, true},
		{"TE identity", say("Transfer-Encoding: identity\r\nContent-Length: 6\r\n", smuggled), any400, true},
		{"TE twice", say("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", smuggled), any400, true},
		{"TE obscured", say("Transfer-Encoding: xchunked\r\n", smuggled), any400, true},
		{"TE with a blank", say("Transfer-Encoding : chunked\r\n", smuggled), []int{400}, true},
		{"a bare LF in chunks", say("Transfer-Encoding: chunked\r\n", "1\nx\n0\n\n"), any400, true},
		{"CL with a sign", say("Content-Length: +6\r\n", smuggled), []int{400}, true},
		{"a header with NUL", say("X: a\x00b\r\n", ""), []int{400}, true},
		{"HTTP/1.0 with TE", strings.Replace(say("Transfer-Encoding: chunked\r\n", smuggled), "HTTP/1.1", "HTTP/1.0", 1), any400, true},
	}
}

// sites are requests that pages of other sites have browsers make.
func sites(a *attacker) []probe {
	from := func(host, more string) string {
		return strings.Replace(a.head("POST", "/v1/stack", "Connection: close\r\nContent-Length: 1\r\n"+more+"\r\n")+"x", "Host: localhost", "Host: "+host, 1)
	}
	var list []probe
	for _, host := range []string{"evil.example", "localhost.evil.example", "127.0.0.2", "[::ffff:127.0.0.3]", "169.254.169.254", "localhost@evil.example", ""} {
		list = append(list, probe{"rebinding " + host, from(host, ""), []int{forbidden, badRequest}, false})
	}
	for _, more := range []string{"Origin: http://evil.example\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n", "Origin: http://localhost.evil.example\r\n"} {
		list = append(list, probe{"another site: " + strings.TrimSpace(more), from("localhost", more), []int{forbidden}, false})
	}
	upgrade := strings.Replace(a.head("GET", "/healthz", "Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://evil.example\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"), "Connection: Upgrade", "Connection: Upgrade, close", 1)
	return append(list,
		probe{"a WebSocket of another site", upgrade, []int{forbidden}, false},
		probe{"CONNECT", "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", []int{400, 401, 403, 404, 405}, false},
		probe{"the URL of another host", strings.Replace(from("localhost", ""), "/v1/stack", "http://evil.example/v1/stack", 1), []int{forbidden}, false},
	)
}

// paths are names that lead out of folders, where a name is taken.
func paths(a *attacker) []probe {
	var list []probe
	for _, up := range []string{"../../../../../../etc/passwd", "..%2f..%2f..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "....//....//etc/passwd", "%00", "..%5c..%5cetc", "%c0%ae%c0%ae%2fetc%2fpasswd"} {
		for _, path := range []string{"/reports/" + up, "/v1/objects/" + up, "/buildid/" + up + "/debuginfo", "/buildid/" + exampleID + "/source/" + up, "/v1/problems/" + up, "/" + up} {
			list = append(list, probe{path, a.head("GET", path, "Connection: close\r\n\r\n"), []int{301, 307, 400, 403, 404}, false})
		}
		path := "/v1/stack?name=" + up
		list = append(list, probe{path, a.head("POST", path, "Connection: close\r\nContent-Length: 1\r\n\r\n") + "x", []int{400, 422}, false})
	}
	return list
}

// strangers are requests of callers without a token, and with wrong ones.
func strangers(a *attacker) []probe {
	var list []probe
	for _, path := range []string{"POST /v1/stack", "POST /v1/profile", "PUT /v1/objects/" + exampleID, "GET /v1/objects/" + exampleID, "POST /v1/symbolize?build-id=00", "GET /metrics", "DELETE /reports/x", "GET /buildid/" + exampleID + "/debuginfo", "POST /v1/otlp/symbolize"} {
		for _, authorization := range []string{"", "Authorization: Bearer \r\n", "Authorization: Bearer wrong-wrong-wrong-wrong\r\n", "Authorization: Basic YTpi\r\n", "Authorization: bearer\t" + a.token()[:8] + "\r\n"} {
			list = append(list, probe{path + " " + strings.TrimSpace(authorization), path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n" + authorization + "\r\n", []int{401, notFound}, false})
		}
	}
	return list
}
