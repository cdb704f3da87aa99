// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// caller asks one thing after the other.
type caller struct {
	*soaking
	random  *rand.Rand
	network string
	http    *http.Client
	conn    *grpc.ClientConn
	calls   pb.UnwinddClient
}

func newCaller(s *soaking, r *rand.Rand) *caller {
	c := &caller{soaking: s, random: r, network: []string{"unix", "tcp"}[r.IntN(2)]}
	c.http = s.Client(c.network)
	target := "passthrough:///" + s.TCP
	if c.network == "unix" {
		target = "unix:" + s.Socket
	}
	var err error
	c.conn, err = grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		panic(err) // the address is right
	}
	c.calls = pb.NewUnwinddClient(c.conn)
	return c
}

func (c *caller) close() {
	c.http.CloseIdleConnections()
	_ = c.conn.Close()
}

// reply is the answer of a server. err is the error of a connection that broke off, or of an answer that
// did.
type reply struct {
	since  time.Time
	status int
	retry  bool // it says when to come again
	body   []byte
	err    error
}

// turn asks something.
func (c *caller) turn() {
	k := c.kinds[c.random.IntN(len(c.kinds))]
	outcome, failure := k.ask(c)
	c.note(k.name, outcome, failure)
	if outcome == busy || outcome == noRoom {
		// Retry-After says seconds; so many have not enough to do for that.
		time.Sleep(time.Duration(50+c.random.IntN(200)) * time.Millisecond)
	}
}

// How requests end.
const (
	right    = "right"
	busy     = "busy"
	noRoom   = "no room"
	broken   = "broken off"
	unwalked = "plugin failed" // the report says so
	cut      = "cut"           // the caller did not send all of it
	canceled = "canceled"      // the caller went away
	wrong    = "WRONG"
)

// judge returns how an undisturbed request ended, and whether it may end so. isRight
// returns the error in an answer.
func (c *caller) judge(r *reply, isRight func([]byte) error) (string, error) {
	isFull := c.harm.concerns(r.since, fullDisk)
	switch {
	case r.err != nil && c.harm.concerns(r.since, killedWorker, fullDisk):
		return broken, nil
	case r.err != nil:
		return wrong, r.err
	case r.status == http.StatusOK || r.status == http.StatusCreated || r.status == http.StatusNoContent:
		err := isRight(r.body)
		switch {
		case err == nil:
			return right, nil
		case saysPluginFailed(r.body) && c.harm.concerns(r.since, killedPlugin, fullDisk, stoppedWorker):
			return unwalked, nil
		}
		return wrong, err
	case r.status == http.StatusTooManyRequests && r.retry:
		return busy, nil
	case (r.status == http.StatusInsufficientStorage || r.status == http.StatusServiceUnavailable) && r.retry && isFull:
		return noRoom, nil
	}
	return wrong, fmt.Errorf("status %d, retry %v, disk full %v: %s", r.status, r.retry, isFull, r.body)
}

// saysPluginFailed reports whether a report says that a plugin did not do what it was asked for.
func saysPluginFailed(report []byte) bool {
	return slices.ContainsFunc([]string{"plugin-failed", "plugin x86_64", "plugin amdgpu"}, func(words string) bool { return bytes.Contains(report, []byte(words)) })
}

// request makes a request by HTTP; read reads the answer.
func (c *caller) request(ctx context.Context, method, path string, body []byte, read func(io.Reader) ([]byte, error)) *reply {
	r := &reply{since: time.Now()}
	q, err := http.NewRequestWithContext(ctx, method, c.Origin()+path, bytes.NewReader(body))
	if err != nil {
		r.err = err
		return r
	}
	answer, err := c.http.Do(q)
	if err != nil {
		r.err = err
		return r
	}
	defer answer.Body.Close()
	r.status, r.retry = answer.StatusCode, answer.Header.Get("Retry-After") != ""
	r.body, r.err = read(answer.Body)
	return r
}

// slowly reads an answer in small pieces.
func slowly(from io.Reader) (all []byte, err error) {
	piece := make([]byte, 1<<10)
	for {
		n, err := from.Read(piece)
		all = append(all, piece[:n]...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// post asks for a report. One in four is hurt.
func (c *caller) post(i *input) (string, error) {
	isRight := func(body []byte) error { return i.wrongWith(body) }
	switch c.random.IntN(16) {
	case 0:
		return c.cutUpload(i)
	case 1:
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.random.IntN(80))*time.Millisecond)
		defer cancel()
		r := c.request(ctx, http.MethodPost, i.path, i.body, io.ReadAll)
		if r.err != nil {
			return canceled, nil
		}
		return c.judge(r, isRight)
	case 2:
		return c.judge(c.request(context.Background(), http.MethodPost, i.path, i.body, slowly), isRight)
	}
	return c.judge(c.request(context.Background(), http.MethodPost, i.path, i.body, io.ReadAll), isRight)
}

func (i *input) wrongWith(body []byte) error {
	if i.isRight(body) {
		return nil
	}
	return errors.New("another answer than the command's: " + i.difference(body))
}

// cutUpload says that it sends more than it does. It waits for an answer or not.
func (c *caller) cutUpload(i *input) (string, error) {
	conn, err := c.Dial(context.Background(), c.network)
	if err != nil {
		return wrong, err
	}
	defer conn.Close()
	more := c.random.IntN(2) * 1000
	part := i.body[:c.random.IntN(len(i.body))]
	if more > 0 {
		part = i.body
	}
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", i.path, len(i.body)+more, part)
	half, ok := conn.(interface{ CloseWrite() error })
	if err != nil || !ok || c.random.IntN(2) == 0 {
		return cut, nil
	}
	_ = half.CloseWrite()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return cut, nil // who has closed one half is taken for one that went away
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode < http.StatusBadRequest {
		return wrong, fmt.Errorf("a body of which a part was sent is answered: %s: %s", answer.Status, text)
	}
	return cut, nil
}

// stopReading reads the beginning of a large answer, and the rest when the server has given
// up, or not. What it gets then is whole, or breaks off.
func (c *caller) stopReading(i *input) (string, error) {
	since := time.Now()
	conn, err := c.Dial(context.Background(), "unix")
	if err != nil {
		return wrong, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", i.path, len(i.body), i.body); err != nil {
		return c.judge(&reply{since: since, err: err}, nil)
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if err != nil {
		return c.judge(&reply{since: since, err: err}, nil)
	}
	defer answer.Body.Close()
	if c.random.IntN(2) == 0 {
		return canceled, nil // it goes away in the middle
	}
	time.Sleep(6 * time.Second) // longer than --max-idle
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return broken, nil
	}
	return c.judge(&reply{since: since, status: answer.StatusCode, retry: answer.Header.Get("Retry-After") != "", body: body}, i.wrongWith)
}
