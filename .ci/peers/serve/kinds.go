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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// kind of requests, and how one is made and judged.
type kind struct {
	name string
	ask  func(*caller) (outcome string, failure error)
}

// prepare makes the requests of callers, and gets the right answers from the command.
func (s *soaking) prepare() error {
	m, err := newMaterial(s.unwindd, s.dir)
	if err != nil {
		return err
	}
	if s.inputs, err = loadInputs(s.unwindd, s.dir); err != nil {
		return err
	}
	core := filepath.Join(examples, "crash", "server.core")
	recording := filepath.Join(examples, "profile", "perf.data")
	large, err := snapshotOfServer(s.unwindd, s.dir)
	if err != nil {
		return err
	}
	var prepared []*input
	for _, one := range []struct {
		name, path, file string
		args             []string
	}{
		{"profile", "/v1/profile?name=target", recording, []string{"profile", "target", "--format", "json", "--sysroot", m.empty}},
		{"snapshot of core", "/v1/snapshot", core, append([]string{"snapshot", "target", "-o", "-", "--sysroot", m.empty}, crashExe()...)},
		{"eval", "/v1/eval?frame=7&var=batch[1]->headers->value", core, append([]string{
			"eval", "--snapshot", "target", "--frame", "7", "--var", "batch[1]->headers->value", "--format", "json", "--sysroot", m.empty}, crashExe()...)},
		{"large", "/v1/stack?registers&code=60", large, []string{
			"stack", "target", "--format", "json", "--registers", "--code", "60", "--sysroot", m.empty, "--exe", s.unwindd}},
	} {
		in, err := m.input(one.name, one.path, one.file, one.args...)
		if err != nil {
			return err
		}
		prepared = append(prepared, in)
	}
	fmt.Printf("the large report has %d bytes\n", len(prepared[3].want))
	s.kindsOf(m, prepared)
	return nil
}

// kindsOf makes the kinds: of those that are there twice there are twice as many.
func (s *soaking) kindsOf(m *material, prepared []*input) {
	for _, in := range append(s.inputs, prepared[:3]...) {
		s.kinds = append(s.kinds, &kind{in.name, func(c *caller) (string, error) { return c.post(in) }})
	}
	core := s.inputs[0]
	s.kinds = append(s.kinds,
		&kind{"symbolize", (*caller).symbolize},
		&kind{"put and get", func(c *caller) (string, error) { return c.putAndGet(m.crash) }},
		&kind{"kept report", func(c *caller) (string, error) { return c.keptReport(s.inputs[3]) }},
		&kind{"gRPC stack", func(c *caller) (string, error) { return c.stackByGRPC(core) }},
		&kind{"gRPC symbolize", (*caller).symbolizeByGRPC},
		&kind{"--server", func(c *caller) (string, error) { return c.byServer(core) }},
		&kind{"large, not read", func(c *caller) (string, error) {
			if c.random.IntN(8) != 0 { // it takes seconds
				return c.post(s.inputs[2])
			}
			return c.stopReading(prepared[3])
		}},
	)
}

// putAll puts what targets need.
func (s *soaking) putAll() error {
	c := s.Client("unix")
	defer c.CloseIdleConnections()
	id, err := cost.BuildID(s.unwindd)
	if err != nil {
		return err
	}
	for _, file := range []struct{ id, path string }{{crashID, filepath.Join(examples, "crash", "server")}, {fmt.Sprintf("%x", id), s.unwindd}} {
		data, err := os.ReadFile(file.path)
		if err != nil {
			return err
		}
		if err := s.Put(c, file.id, data); err != nil {
			return err
		}
	}
	return nil
}

// The addresses that are symbolized, and what they are called.
var (
	addresses = []uint64{0x401941, 0x401100}
	functions = [][]string{{"serve"}, {"content_length", "read_body.cold"}}
)

func (c *caller) symbolize() (string, error) {
	body := []byte(`{"addresses":["0x401941","0x401100"]}`)
	r := c.request(context.Background(), http.MethodPost, "/v1/symbolize?build-id="+crashID, body, io.ReadAll)
	return c.judge(r, func(text []byte) error {
		var list []struct {
			Symbol []struct{ FunctionName string }
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return err
		}
		var got [][]string
		for _, a := range list {
			var names []string
			for _, f := range a.Symbol {
				names = append(names, f.FunctionName)
			}
			got = append(got, names)
		}
		return wantFunctions(got)
	})
}

func wantFunctions(got [][]string) error {
	if fmt.Sprint(got) != fmt.Sprint(functions) {
		return fmt.Errorf("functions %v, expected %v", got, functions)
	}
	return nil
}

// putAndGet puts an object, which is there already, and asks for it.
func (c *caller) putAndGet(data []byte) (string, error) {
	r := c.request(context.Background(), http.MethodPut, "/v1/objects/"+crashID, data, io.ReadAll)
	if outcome, err := c.judge(r, func([]byte) error { return nil }); outcome != right {
		return outcome, err
	}
	r = c.request(context.Background(), http.MethodGet, "/v1/objects/"+crashID, nil, io.ReadAll)
	return c.judge(r, func(text []byte) error {
		if !strings.Contains(string(text), `"executable": true`) || !strings.Contains(string(text), `"debuginfo": true`) {
			return fmt.Errorf("the object is %s", text)
		}
		return nil
	})
}

// keptReport has a report kept, reads it, and removes it.
func (c *caller) keptReport(i *input) (string, error) {
	var said struct {
		ID    string
		Bytes int
	}
	r := c.request(context.Background(), http.MethodPost, "/v1/reports/stack", i.body, io.ReadAll)
	if outcome, err := c.judge(r, func(text []byte) error { return json.Unmarshal(text, &said) }); outcome != right {
		return outcome, err
	}
	since := r.since
	r = c.request(context.Background(), http.MethodGet, "/reports/"+said.ID, nil, io.ReadAll)
	r.since = since // it is of then
	outcome, err := c.judge(r, func(text []byte) error {
		if len(text) != said.Bytes {
			return fmt.Errorf("a report of %d bytes, and %d were said", len(text), said.Bytes)
		}
		return i.wrongWith(text)
	})
	removed := c.request(context.Background(), http.MethodDelete, "/reports/"+said.ID, nil, io.ReadAll)
	if o, e := c.judge(removed, func([]byte) error { return nil }); outcome == right {
		outcome, err = o, e
	}
	if outcome != right {
		return outcome, err
	}
	if r = c.request(context.Background(), http.MethodGet, "/reports/"+said.ID, nil, io.ReadAll); r.status != http.StatusNotFound {
		return wrong, fmt.Errorf("a report that was removed: status %d", r.status)
	}
	return right, nil
}

// fromGRPC is the reply that a call has.
func fromGRPC(since time.Time, body []byte, err error) *reply {
	r := &reply{since: since, status: http.StatusOK, body: body}
	if err == nil {
		return r
	}
	s := status.Convert(err)
	r.body = []byte(s.Message())
	for _, d := range s.Details() {
		if _, ok := d.(*errdetails.RetryInfo); ok {
			r.retry = true
		}
	}
	switch {
	case s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "disk"):
		r.status = http.StatusInsufficientStorage
	case s.Code() == codes.ResourceExhausted:
		r.status = http.StatusTooManyRequests
	case s.Code() == codes.Unavailable && r.retry:
		r.status = http.StatusServiceUnavailable
	default:
		r.status, r.body = http.StatusInternalServerError, []byte(err.Error())
	}
	return r
}

// stackByGRPC asks for stacks. One in eight is canceled.
func (c *caller) stackByGRPC(i *input) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	isCanceled := c.random.IntN(8) == 0
	if isCanceled {
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(c.random.IntN(60))*time.Millisecond)
	}
	defer cancel()
	since := time.Now()
	body, err := c.report(ctx, i)
	if err != nil && isCanceled {
		return canceled, nil
	}
	return c.judge(fromGRPC(since, body, err), i.wrongWith)
}

// report is the report of a call; it is whole where there is no error.
func (c *caller) report(ctx context.Context, i *input) ([]byte, error) {
	st, err := c.calls.Stack(ctx)
	if err != nil {
		return nil, err
	}
	parts := []*pb.StackRequest{
		{Part: &pb.StackRequest_Options{Options: &pb.StackOptions{}}},
		{Part: &pb.StackRequest_Data{Data: i.body[:1000]}}, {Part: &pb.StackRequest_Data{Data: i.body[1000:]}},
	}
	for _, p := range parts {
		if err := st.Send(p); err != nil && !errors.Is(err, io.EOF) { // of io.EOF receiving says why
			return nil, err
		}
	}
	_ = st.CloseSend() // likewise
	var all bytes.Buffer
	hasEnd := false
	for {
		m, err := st.Recv()
		switch {
		case errors.Is(err, io.EOF) && hasEnd:
			return all.Bytes(), nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("the report has no end")
		case err != nil:
			return nil, err
		}
		hasEnd = m.GetEnd() != nil
		all.Write(m.GetData())
	}
}

func (c *caller) symbolizeByGRPC() (string, error) {
	since := time.Now()
	got, err := c.symbols()
	return c.judge(fromGRPC(since, nil, err), func([]byte) error { return wantFunctions(got) })
}

func (c *caller) symbols() (got [][]string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	st, err := c.calls.Symbolize(ctx)
	if err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(crashID)
	if err != nil {
		return nil, err
	}
	if err := st.Send(&pb.SymbolizeRequest{BuildId: id, Addresses: addresses}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m, err := st.Recv()
	if err != nil {
		return nil, err
	}
	for _, a := range m.Addresses {
		var names []string
		for _, f := range a.Frames {
			names = append(names, f.Function)
		}
		got = append(got, names)
	}
	return got, st.CloseSend()
}

// byServer runs the command with --server.
func (c *caller) byServer(i *input) (string, error) {
	address := c.TCP
	if c.network == "unix" {
		address = "unix:" + c.Socket
	}
	since := time.Now()
	cmd := exec.Command(i.argv[0], append([]string{"--server", address}, i.argv[1:]...)...)
	cmd.Dir = i.dir
	body, err := cmd.Output()
	r := &reply{since: since, status: http.StatusOK, body: body}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		// Its text is for people; the status is the one that it was told.
		switch text := string(failed.Stderr); {
		case strings.Contains(text, "too many requests wait"):
			r.status, r.retry = http.StatusTooManyRequests, true
		case strings.Contains(text, "disk is full"):
			r.status, r.retry = http.StatusInsufficientStorage, true
		default:
			r.status, r.body = http.StatusInternalServerError, []byte("exit status "+failed.ProcessState.String()+": "+text)
		}
	} else if err != nil {
		return wrong, err
	}
	return c.judge(r, i.wrongWith)
}
