// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Attacks by HTTP/1.1, on what a connection, a body or an answer keeps of the server.

// drip sends a beginning on each of many connections, and then a piece now and then.
func drip(n int, begin func(*attacker) string, piece string, each time.Duration) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		many(ctx, n, func(ctx context.Context, _ int) error {
			c, err := a.dial(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := io.WriteString(c, begin(a)); err != nil {
				return err
			}
			for ctx.Err() == nil {
				pause(ctx, each)
				if _, err := io.WriteString(c, piece); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	}
}

func beginHeaders(a *attacker) string { return a.head("GET", "/healthz", "X-Slow: ") }

func beginBody(a *attacker) string {
	return a.head("POST", "/v1/stack", "Content-Length: 15000000\r\n\r\n")
}

func beginUpload(a *attacker) string { return beginBody(a) + strings.Repeat("x", 12<<20) }

func beginChunked(a *attacker) string {
	return a.head("POST", "/v1/profile", "Transfer-Encoding: chunked\r\n\r\n")
}

// stay opens many connections, says something on each, and leaves them as they are.
func stay(n int, says string) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		var open []net.Conn
		for ctx.Err() == nil {
			if len(open) == n {
				pause(ctx, 100*time.Millisecond)
				continue
			}
			c, err := a.dial(ctx)
			if err != nil {
				pause(ctx, 50*time.Millisecond)
				continue
			}
			_, _ = io.WriteString(c, says)
			open = append(open, c)
		}
		return nil
	}
}

// readSlowly has many large reports made, and takes a byte of each now and then.
func readSlowly(ctx context.Context, a *attacker) error {
	body := packed(core(5000, false))
	many(ctx, 32, func(ctx context.Context, _ int) error {
		c, err := a.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		if t, ok := c.(*bounded).Conn.(*net.TCPConn); ok {
			_ = t.SetReadBuffer(1) // the kernel takes its least
		}
		if _, err := fmt.Fprintf(c, "%s%s", a.head("POST", "/v1/stack?registers", fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))), body); err != nil {
			return err
		}
		for ctx.Err() == nil {
			pause(ctx, 500*time.Millisecond)
			if _, err := c.Read(make([]byte, 1)); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// pipeline sends requests without reading an answer.
func pipeline(ctx context.Context, a *attacker) error {
	requests := strings.Repeat(a.head("GET", "/metrics", "\r\n"), 64)
	many(ctx, 16, func(ctx context.Context, _ int) error {
		c, err := a.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		for range 64 {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := io.WriteString(c, requests); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// hugeHeaders sends headers of many sizes and numbers.
func hugeHeaders(ctx context.Context, a *attacker) error {
	for name, value := range map[string]string{"X-Long": strings.Repeat("v", 1<<20), "X-Many: a\r\nX-Many": strings.Repeat("b\r\nX-Many: ", 20_000)} {
		many(ctxFor(ctx, 2), 8, func(ctx context.Context, _ int) error {
			c, err := a.dial(ctx)
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err = io.WriteString(c, a.head("GET", "/healthz", name+": "+value+"\r\n\r\n")); err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, io.LimitReader(c, 4096))
			return err
		})
	}
	return nil
}

// ctxFor is a part of the time of an attack.
func ctxFor(ctx context.Context, parts int) context.Context {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx
	}
	part, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(parts))
	context.AfterFunc(part, cancel)
	return part
}

// hugeOptions sends URLs and options as large as they may be, and larger.
func hugeOptions(ctx context.Context, a *attacker) error {
	queries := []string{
		"/v1/stack?" + strings.Repeat("globals=x&", 6000), "/v1/stack?name=" + strings.Repeat("%F0%9F%98%80", 5000), "/v1/stack?thread=" + strings.Repeat("9", 60_000),
		"/v1/stack?" + strings.Repeat("a&", 30_000), "/v1/eval?arch=x86_64&expr=" + strings.Repeat("dup+plus+", 7000), "/v1/profile?" + strings.Repeat("focus=(a*)*b&", 4500),
		"/v1/profile?focus=" + strings.Repeat("(", 30_000), "/" + strings.Repeat("../", 20_000), "/reports/" + strings.Repeat("a", 60_000), "/v1/stack?depth=4294967295&elements=4294967295&locals&top=4294967295&code=4294967295&source=4294967295",
	}
	many(ctx, 8, func(ctx context.Context, i int) error {
		c := a.client(a.token())
		defer c.CloseIdleConnections()
		for _, q := range queries {
			a.ask(ctx, c, http.MethodPost, q, strings.NewReader("x"))
		}
		a.ask(ctx, c, http.MethodPost, "/v1/symbolize?build-id=01092ed6fbfc989c60cdda4dd2cc30a56e23db6d", strings.NewReader(`{"addresses":[`+strings.Repeat(`"0x401941",`, 1<<19)+`"0x1"]}`))
		a.ask(ctx, c, http.MethodPost, "/v1/symbolize?build-id=00", strings.NewReader(strings.Repeat("[", 4<<20)))
		return nil
	})
	return nil
}

// manyTokens asks with each token of one address for all that there is.
func manyTokens(ctx context.Context, a *attacker) error {
	body := string(example("crash", "server.core"))
	many(ctx, 2*len(a.tokens), func(ctx context.Context, i int) error {
		c := a.client(a.tokens[i%len(a.tokens)])
		defer c.CloseIdleConnections()
		for range 20 {
			if status := a.ask(ctx, c, http.MethodPost, "/v1/stack?format=html", strings.NewReader(body)); status != http.StatusOK {
				pause(ctx, 50*time.Millisecond)
			}
		}
		return nil
	})
	return nil
}

// floodObjects puts files of other build IDs, which are all kept as long as there is room.
func floodObjects(ctx context.Context, a *attacker) error {
	exe := example("crash", "server")
	many(ctx, 4, func(ctx context.Context, i int) error {
		c := a.client(a.token())
		defer c.CloseIdleConnections()
		for n := range 1 << 20 {
			file, id := withBuildID(exe, uint64(i)<<32|uint64(n)) //nolint:gosec // small
			if status := a.ask(ctx, c, http.MethodPut, "/v1/objects/"+id, strings.NewReader(file)); status == 0 {
				return io.ErrUnexpectedEOF
			} else if status >= http.StatusBadRequest {
				pause(ctx, 100*time.Millisecond)
			}
		}
		return nil
	})
	return nil
}

// poisonObjects puts files with wrong names for build IDs that others are about to have.
func poisonObjects(ctx context.Context, a *attacker) error {
	exe := bytes.ReplaceAll(example("crash", "server"), []byte("content_length"), []byte("another_symbol"))
	c := a.client(a.token())
	defer c.CloseIdleConnections()
	for n := uint64(1); n < 50 && ctx.Err() == nil; n++ {
		file, id := withBuildID(exe, n)
		a.ask(ctx, c, http.MethodPut, "/v1/objects/"+id, strings.NewReader(file))
	}
	<-ctx.Done()
	return nil
}

// floodReports has reports kept, and keeps none of their links.
func floodReports(ctx context.Context, a *attacker) error {
	body := string(example("mixed", "mixed.snapshot"))
	many(ctx, 4, func(ctx context.Context, _ int) error {
		c := a.client(a.token())
		defer c.CloseIdleConnections()
		for {
			status := a.ask(ctx, c, http.MethodPost, "/v1/reports/stack?format=html&lanes&code=60", strings.NewReader(body))
			switch {
			case status == 0:
				return io.ErrUnexpectedEOF
			case status >= http.StatusBadRequest:
				pause(ctx, 100*time.Millisecond)
			}
		}
	})
	return nil
}

// crawl asks for files that are nowhere, by every path that leads to one.
func crawl(ctx context.Context, a *attacker) error {
	many(ctx, 8, func(ctx context.Context, i int) error {
		c := a.client(a.token())
		defer c.CloseIdleConnections()
		for n := range 1 << 20 {
			id := fmt.Sprintf("%016x%016x%08x", i, n, n)
			for _, path := range []string{"/buildid/" + id + "/debuginfo", "/buildid/" + id + "/executable", "/buildid/" + id + "/source/etc/passwd", "/buildid/" + id + "/section/.text", "/v1/objects/" + id, "/server/" + id + "/server.sym"} {
				if status := a.ask(ctx, c, http.MethodGet, path, nil); status == 0 {
					return io.ErrUnexpectedEOF
				}
			}
		}
		return nil
	})
	return nil
}

// upgrades asks for other protocols, and then speaks as if it had them.
func upgrades(ctx context.Context, a *attacker) error {
	return drip(32, func(a *attacker) string {
		return a.head("GET", "/", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	}, "\x81\x80\x00\x00\x00\x00", 200*time.Millisecond)(ctx, a)
}

// example is a file of the examples. The attacks run in the folder of this module.
func example(names ...string) []byte {
	b, err := os.ReadFile(filepath.Join(append([]string{"../../examples"}, names...)...))
	if err != nil {
		panic(err) // there are none
	}
	return b
}
