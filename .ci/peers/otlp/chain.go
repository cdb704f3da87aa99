// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/unwindd/unwindd/.ci/peers/collector"
)

// formNames are the forms of OTLP, each with a way through the first collector.
var formNames = []string{"grpc", "http", "json"}

// chain is a collector, unwindd, and a collector that keeps what comes.
type chain struct {
	unwindd, dir string
	maker        *maker

	addresses map[string]string // addresses of the first collector, by form
	server    string            // address of unwindd
	last      [2]string         // addresses of the last collector, by gRPC and HTTP

	first, sink *collector.Collector
	kept        *collector.Sink
	process     *exec.Cmd
}

func newChain(unwindd, dir string, libs []*library) (c *chain, err error) {
	c = &chain{unwindd: unwindd, dir: dir, addresses: map[string]string{}, maker: &maker{rand.New(rand.NewPCG(1, 2)), libs}}
	var unused string // of receivers' HTTP
	for _, address := range []*string{&c.server, &c.last[0], &c.last[1], &unused} {
		if *address, err = collector.FreeAddress(); err != nil {
			return nil, err
		}
	}
	for _, form := range formNames {
		if c.addresses[form], err = collector.FreeAddress(); err != nil {
			return nil, err
		}
	}
	if c.kept, err = collector.NewSink(); err != nil {
		return nil, err
	}
	if err := c.startSink(); err != nil {
		return nil, err
	}
	if err := c.startServer(); err != nil {
		return nil, err
	}
	const patient = "retry_on_failure: {initial_interval: 200ms, max_interval: 1s, max_elapsed_time: 0}, sending_queue: {queue_size: 10000}, timeout: 20s"
	c.first, err = collector.Start(fmt.Sprintf(`
receivers:
  otlp/grpc: {protocols: {grpc: {endpoint: %q, max_recv_msg_size_mib: 64}}}
  otlp/http: {protocols: {grpc: {endpoint: %q, max_recv_msg_size_mib: 64}}}
  otlp/json: {protocols: {grpc: {endpoint: %q, max_recv_msg_size_mib: 64}}}
exporters:
  otlp_grpc: {endpoint: %q, tls: {insecure: true}, %s}
  otlp_http: {endpoint: "http://%s", %s}
  otlp_http/json: {endpoint: "http://%s", encoding: json, %s}
service:
  pipelines:
    profiles/grpc: {receivers: [otlp/grpc], exporters: [otlp_grpc]}
    profiles/http: {receivers: [otlp/http], exporters: [otlp_http]}
    profiles/json: {receivers: [otlp/json], exporters: [otlp_http/json]}
`, c.addresses["grpc"], c.addresses["http"], c.addresses["json"], c.server, patient, c.server, patient, c.server, patient), nil)
	return c, err
}

func (c *chain) startSink() (err error) {
	c.sink, err = collector.Start(collector.Keeping(c.last[0], c.last[1], 256), c.kept)
	return err
}

// startServer starts unwindd, and waits until it listens.
func (c *chain) startServer() error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := os.MkdirAll(filepath.Join(c.dir, "run"), 0o700); err != nil {
		return err
	}
	c.process = exec.Command(c.unwindd, "serve", "--listen", "unix:"+filepath.Join(c.dir, "socket"), "--sysroot", "/",
		"--otlp-listen", c.server, "--otlp-to", "grpc://"+c.last[0], "--state", filepath.Join(c.dir, "state"), "--log-level", "debug")
	c.process.Stderr = log
	c.process.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "XDG_RUNTIME_DIR=" + filepath.Join(c.dir, "run")}
	c.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.process.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), "for profiles") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return nil
		}
	}
	return fmt.Errorf("%w\n%s", errors.Join(errors.New("unwindd ended"), c.process.Wait()), c.log())
}

func (c *chain) log() string {
	b, _ := os.ReadFile(filepath.Join(c.dir, "log")) // it is for people
	return string(b)
}

// killServer kills unwindd.
func (c *chain) killServer() {
	_ = c.process.Process.Kill()
	_ = c.process.Wait()
}

func (c *chain) end() {
	for _, one := range []*collector.Collector{c.first, c.sink} {
		if one != nil {
			_ = one.End()
		}
	}
	c.killServer()
}

// encoded sends and receives messages that are encoded already.
type encoded struct{}

func (encoded) Name() string                    { return "proto" }
func (encoded) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (encoded) Unmarshal(_ []byte, _ any) error { return nil }

// sender sends requests by gRPC.
type sender struct{ *grpc.ClientConn }

func newSender(address string) (*sender, error) {
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(encoded{})))
	return &sender{c}, err
}

func (s *sender) send(ctx context.Context, request []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return s.Invoke(ctx, "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", request, new([]byte))
}

// arrived counts the profiles that came to the last collector.
type arrived struct {
	times         map[string]int // by ID
	frames, named int
}

// wait waits until the profiles with IDs have come, and adds them to a.
func (c *chain) wait(a *arrived, ids []string, most time.Duration) error {
	for end := time.Now().Add(most); ; time.Sleep(20 * time.Millisecond) {
		list, err := c.kept.Take()
		if err != nil {
			return err
		}
		for _, d := range list {
			a.add(d)
		}
		missing := 0
		for _, id := range ids {
			if a.times[id] == 0 {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d profiles have not come after %v", missing, len(ids), most)
		}
	}
}

func (a *arrived) add(d *profiles.ProfilesData) {
	all, n := named(d)
	a.frames, a.named = a.frames+all, a.named+n
	for _, r := range d.GetResourceProfiles() {
		for _, s := range r.GetScopeProfiles() {
			for _, p := range s.GetProfiles() {
				a.times[string(p.GetProfileId())]++
			}
		}
	}
}

// twice counts the profiles that came more than once.
func (a *arrived) twice() (n int) {
	for _, times := range a.times {
		if times > 1 {
			n++
		}
	}
	return n
}

// sendAll sends made profiles to an address, and returns their IDs. Between two it calls pause.
func (c *chain) sendAll(address string, pause func(i int) error) (ids []string, err error) {
	s, err := newSender(address)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for i := range *count {
		id, request, err := c.maker.profile(*frames)
		if err != nil {
			return nil, err
		}
		if err := s.send(context.Background(), request); err != nil {
			return nil, err
		}
		ids = append(ids, id)
		if err := pause(i); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// forms sends profiles in each form.
func forms(c *chain) error {
	for _, form := range formNames {
		a := &arrived{times: map[string]int{}}
		ids, err := c.sendAll(c.addresses[form], func(int) error { return nil })
		if err != nil {
			return err
		}
		if err := c.wait(a, ids, 2*time.Minute); err != nil {
			return err
		}
		fmt.Printf("  %s: %d profiles, %d frames, %d with names, %d profiles twice\n", form, len(ids), a.frames, a.named, a.twice())
		if form != formNames[0] && a.frames != a.named { // the first ones may come before libraries were read
			return fmt.Errorf("%s: %d frames have no names", form, a.frames-a.named)
		}
	}
	return nil
}

// outage sends profiles while something is away for a while.
func (c *chain) outage(away, back func() error) error {
	a := &arrived{times: map[string]int{}}
	var returned sync.WaitGroup
	var failed error
	ids, err := c.sendAll(c.addresses["grpc"], func(i int) error {
		if i != *count/3 {
			time.Sleep(20 * time.Millisecond)
			return nil
		}
		returned.Go(func() {
			time.Sleep(3 * time.Second)
			failed = back()
		})
		return away()
	})
	returned.Wait()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if err := c.wait(a, ids, 2*time.Minute); err != nil {
		return err
	}
	fmt.Printf("  %d profiles, none lost, %d twice; %d of %d frames with names\n", len(ids), a.twice(), a.named, a.frames)
	return nil
}

func sinkEnds(c *chain) error { return c.outage(c.sink.End, c.startSink) }

func serverEnds(c *chain) error {
	return c.outage(func() error { c.killServer(); return nil }, c.startServer)
}

// measured sends profiles straight to unwindd, by several senders at once.
func measured(c *chain) error {
	var requests [][]byte
	var ids []string
	for range *count {
		id, request, err := c.maker.profile(*frames)
		if err != nil {
			return err
		}
		ids, requests = append(ids, id), append(requests, request)
	}
	for _, round := range []string{"new addresses", "the same ones"} {
		a := &arrived{times: map[string]int{}}
		began := time.Now()
		slowest, err := c.together(requests)
		if err != nil {
			return err
		}
		took := time.Since(began)
		if err := c.wait(a, ids, time.Minute); err != nil {
			return err
		}
		fmt.Printf("  %s: %d senders, %d profiles, %d frames, %d with names: %.0f frames a second, the slowest profile took %v\n",
			round, *senders, len(ids), a.frames, a.named, float64(a.frames)/took.Seconds(), slowest.Round(time.Millisecond))
	}
	return nil
}

// together sends requests by all senders at once, and returns the longest time of one.
func (c *chain) together(requests [][]byte) (slowest time.Duration, err error) {
	next := make(chan []byte, len(requests))
	for _, r := range requests {
		next <- r
	}
	close(next)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range *senders {
		all.Go(func() {
			s, failed := newSender(c.server)
			for r := range next {
				if failed != nil {
					break
				}
				began := time.Now()
				failed = s.send(context.Background(), r)
				mu.Lock()
				slowest = max(slowest, time.Since(began))
				mu.Unlock()
			}
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, failed)
			_ = s.Close()
		})
	}
	all.Wait()
	return slowest, err
}

// payloads sends the requests of a profiler.
func payloads(c *chain) error {
	if *payload == "" {
		return nil
	}
	requests, err := requestsOf(*payload)
	if err != nil {
		return err
	}
	s, err := newSender(c.addresses["grpc"])
	if err != nil {
		return err
	}
	defer s.Close()
	want := 0
	for _, r := range requests {
		if err := s.send(context.Background(), r); err != nil {
			return err
		}
		want++
	}
	all, frames, withNames := 0, 0, 0
	for end := time.Now().Add(time.Minute); all < want && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		list, err := c.kept.Take()
		if err != nil {
			return err
		}
		for _, d := range list {
			f, n := named(d)
			all, frames, withNames = all+1, frames+f, withNames+n
		}
	}
	fmt.Printf("  %d requests of %d have come: %d frames, %d with names\n", all, want, frames, withNames)
	if all < want {
		return fmt.Errorf("%d requests have not come", want-all)
	}
	return nil
}
