// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/.ci/peers/daemon"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// honest is a caller who asks for what he needs, one thing after the other.
type honest struct {
	*daemon.Server
	http   *http.Client
	conn   *grpc.ClientConn
	core   []byte
	report string // the path of the report that he had kept
	wants  []want
	puts   uint64 // build IDs of which he has put a file
}

// want is a thing he asks for, and the right answer.
type want struct {
	name  string
	ask   func(context.Context) ([]byte, error)
	right []byte
}

// sample is how long an answer took, and the error of one that is missing or wrong.
type sample struct {
	name string
	took time.Duration
	err  error
}

// newHonest puts the file that the caller's core needs, has a report kept, and asks for
// everything once.
func newHonest(s *daemon.Server) (*honest, error) {
	h := &honest{Server: s, http: s.Client("tcp"), core: example("crash", "server.core")}
	if err := s.Put(h.http, exampleID, example("crash", "server")); err != nil {
		return nil, err
	}
	var err error
	if h.conn, err = grpc.NewClient("passthrough:///"+s.TCP, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost")); err != nil {
		return nil, err
	}
	_, text, err := daemon.Send(context.Background(), h.http, http.MethodPost, s.Origin()+"/v1/reports/stack", h.core)
	if err != nil {
		return nil, err
	}
	var kept struct{ ID string }
	if err := json.Unmarshal(text, &kept); err != nil || kept.ID == "" {
		return nil, fmt.Errorf("a report that is to be kept: %w: %s", err, text)
	}
	h.report = "/reports/" + kept.ID
	h.wants = []want{
		{name: "stack", ask: func(ctx context.Context) ([]byte, error) {
			return h.get(ctx, h.http, http.MethodPost, "/v1/stack?format=text&crashed", h.core)
		}},
		{name: "names by gRPC", ask: h.symbolize},
		{name: "kept report", ask: func(ctx context.Context) ([]byte, error) {
			return h.get(ctx, h.http, http.MethodGet, h.report, nil)
		}},
		{name: "stack, new connection", ask: func(ctx context.Context) ([]byte, error) {
			c := s.Client("tcp")
			defer c.CloseIdleConnections()
			return h.get(ctx, c, http.MethodPost, "/v1/stack?format=text&crashed", h.core)
		}},
	}
	for i := range h.wants {
		if h.wants[i].right, err = h.wants[i].ask(context.Background()); err != nil {
			return nil, fmt.Errorf("%s: %w", h.wants[i].name, err)
		}
		if !bytes.Contains(h.wants[i].right, []byte("serve")) {
			return nil, fmt.Errorf("%s: %q has no names", h.wants[i].name, h.wants[i].right)
		}
	}
	return h, nil
}

// wake has all workers start.
func (h *honest) wake() error {
	errs := make([]error, 4*workers)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for range 8 {
				_, err := h.wants[len(h.wants)-1].ask(context.Background())
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (h *honest) close() {
	h.http.CloseIdleConnections()
	_ = h.conn.Close()
}

// get asks by HTTP.
func (h *honest) get(ctx context.Context, c *http.Client, method, path string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, h.Origin()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", answer.StatusCode, text)
	}
	return text, err
}

// symbolize asks by gRPC.
func (h *honest) symbolize(ctx context.Context) ([]byte, error) {
	id, err := hex.DecodeString(exampleID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+h.Token))
	defer cancel()
	call, err := pb.NewUnwinddClient(h.conn).Symbolize(ctx)
	if err != nil {
		return nil, err
	}
	if err := call.Send(&pb.SymbolizeRequest{BuildId: id, Addresses: []uint64{0x401941}}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	answer, err := call.Recv()
	if err != nil {
		return nil, err
	}
	_ = call.CloseSend()
	return proto.MarshalOptions{Deterministic: true}.Marshal(answer)
}

// putAndAsk puts the file of another build ID, and asks for the stacks of a core of it: another
// caller may have put a wrong one before.
func (h *honest) putAndAsk(ctx context.Context) ([]byte, error) {
	h.puts++
	exe, id := withBuildID(example("crash", "server"), h.puts)
	core, _ := withBuildID(h.core, h.puts)
	if err := h.Put(h.http, id, []byte(exe)); err != nil {
		return nil, err
	}
	return h.get(ctx, h.http, http.MethodPost, "/v1/stack?format=text&crashed", []byte(core))
}

// ownFile is the name of that.
const ownFile = "own file"

// ownFileEach is how seldom he has another file.
const ownFileEach = 16

// honestPatience is how long he waits for an answer.
const honestPatience = 20 * time.Second

// honestPause is how long he looks at one.
const honestPause = 15 * time.Millisecond

// goOn asks until the context ends.
func (h *honest) goOn(ctx context.Context) []sample {
	var list []sample
	for i := 0; ctx.Err() == nil; i++ {
		w := &h.wants[i%len(h.wants)]
		if i%ownFileEach == ownFileEach-1 {
			w = &want{ownFile, h.putAndAsk, h.wants[0].right}
		}
		one, cancel := context.WithTimeout(context.Background(), honestPatience)
		began := time.Now()
		got, err := w.ask(one)
		took := time.Since(began)
		cancel()
		if err == nil && !bytes.Equal(got, w.right) {
			err = fmt.Errorf("another answer than before: %.300q", got)
		}
		list = append(list, sample{w.name, took, err})
		time.Sleep(honestPause)
	}
	return list
}

// percentile is the time that so many of a hundred samples do not exceed. Files that are put take
// ten times as long as all else, and would be all that is seen of it.
func percentile(list []sample, p int) time.Duration {
	var times []time.Duration
	for _, s := range list {
		if s.name != ownFile {
			times = append(times, s.took)
		}
	}
	slices.Sort(times)
	if len(times) == 0 {
		return 0
	}
	return times[min(len(times)*p/100, len(times)-1)]
}

// lost returns the first errors of samples, and how many there are.
func lost(list []sample) (errs []string, n int) {
	for _, s := range list {
		if s.err == nil {
			continue
		}
		if n++; len(errs) < 3 {
			errs = append(errs, s.name+": "+strings.ReplaceAll(s.err.Error(), "\n", " "))
		}
	}
	return errs, n
}
