// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// This file has callers that want more than their share.

const (
	hogToken    = "0123456789abcdef"
	honestToken = "fedcba9876543210"
)

// hogAndHonest are tokens of a caller that wants all, and of an honest one.
func hogAndHonest() Tokens {
	return Tokens{sha256.Sum256([]byte(hogToken)): "hog", sha256.Sum256([]byte(honestToken)): "honest"}
}

// postAs sends a file as a caller.
func (s *testServer) postAs(t *testing.T, token, path, name string) (*http.Response, string) {
	t.Helper()
	return s.ask(t, http.MethodPost, path, bytes.NewReader(file(t, name)), "Authorization", "Bearer "+token)
}

// connect opens a connection that ends with the test.
func (s *testServer) connect(t *testing.T) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// head is the head of a message of gRPC.
func head(size int) []byte {
	return binary.BigEndian.AppendUint32([]byte{0}, uint32(size)) //nolint:gosec // of a test
}

// TestNoCallerHasMoreThanWhatIsLeft has one caller take half, two a third each, and a third one
// find something.
func TestNoCallerHasMoreThanWhatIsLeft(t *testing.T) {
	b := newBudget(120)
	all := func(caller string) (n int64) {
		for b.of(caller).take(1) == nil {
			n++
		}
		return n
	}
	if n := all("one"); n != 60 {
		t.Errorf("one alone has %d of 120", n)
	}
	if n := all("two"); n != 30 {
		t.Errorf("another has %d of the 60 that are left", n)
	}
	b.of("one").give(20)
	if n := all("one"); n != 5 {
		t.Errorf("%d more", n)
	}
	if n := all("three"); n == 0 {
		t.Error("a third caller has nothing")
	}
	var e *shareError
	if err := b.of("one").take(1); !errors.As(err, &e) || !e.isOwn || problemOf(err).name() != overShare.name {
		t.Errorf("%v, expected that it is the caller's share", err)
	}
	if err := b.of("four").take(1000); !errors.As(err, &e) || e.isOwn || problemOf(err).name() != busy.name {
		t.Errorf("%v, expected that there is not as much", err)
	}
	if err := b.of(fleetCaller).take(b.most - b.used); err != nil {
		t.Errorf("jobs of a fleet: %v", err)
	}
}

// TestWhoWaitsForASharesHasItInTime gives an amount as soon as it is there, and not after that.
func TestWhoWaitsForAShareHasItInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		own := b.of("caller")
		if err := own.take(50); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { own.give(10) })
		if err := own.await(t.Context(), 2*time.Second, 10); err != nil {
			t.Error(err)
		}
		if err := own.await(t.Context(), 2*time.Second, 10); !errors.Is(err, errNoRoom) {
			t.Errorf("%v, expected that there is none", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := own.await(ctx, time.Hour, 10); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, expected that the caller has gone", err)
		}
	})
}

// TestASparePlaceIsForWhoHasNone has one caller take all places.
func TestASparePlaceIsForWhoHasNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(2, 100, 100)
		q.spare = 1
		enter := func(caller string) (has <-chan error) {
			c := make(chan error, 1)
			go func() { c <- q.enter(t.Context(), caller) }()
			synctest.Wait()
			return c
		}
		for range 2 {
			<-enter("hog")
		}
		third := enter("hog")
		if len(third) != 0 {
			t.Fatal("a caller has the spare place, and two others")
		}
		<-enter("honest")
		other, more := enter("other"), enter("honest")
		q.leave("honest")
		synctest.Wait()
		if len(third) != 0 || len(other) != 1 || len(more) != 0 {
			t.Errorf("%d, %d, %d: expected that who has none has the spare place", len(third), len(other), len(more))
		}
		q.leave("hog")
		synctest.Wait()
		if len(third) != 0 || len(more) != 1 {
			t.Errorf("%d, %d: expected the spare place again for who has none", len(third), len(more))
		}
		q.leave("other")
		synctest.Wait()
		if len(third) != 0 {
			t.Error("the hog has a place more than there are")
		}
		q.leave("honest")
		synctest.Wait()
		if len(third) != 1 || q.length() != 0 || q.free != 0 {
			t.Errorf("%d, %d wait, %d free: expected that the hog has its turn", len(third), q.length(), q.free)
		}
	})
}

// TestTheLastPlaceIsForAnotherAddress has callers of one address take all that they get.
func TestTheLastPlaceIsForAnotherAddress(t *testing.T) {
	q := newQueue(2, 0, 0)
	q.spare = 2
	enter := func(caller, address string) error {
		return q.enter(context.WithValue(t.Context(), requestKey, &request{caller: caller, address: address}), caller)
	}
	for _, c := range []struct {
		caller, address string
		hasPlace        bool
	}{
		{"a", "here", true}, {"b", "here", true}, {"a", "here", false}, {"c", "here", true}, {"d", "here", false}, {"a", "there", false}, {"e", "there", true}, {"f", "elsewhere", false},
	} {
		if err := enter(c.caller, c.address); (err == nil) != c.hasPlace {
			t.Errorf("%s of %s: %v", c.caller, c.address, err)
		}
	}
	for _, caller := range []string{"a", "b", "c", "e"} {
		q.leave(caller)
	}
	if q.free != 2 || len(q.has) != 0 || len(q.from) != 0 {
		t.Errorf("%d places, %v, %v", q.free, q.has, q.from)
	}
}

// messages are messages of random sizes as they come by gRPC, in pieces of any size.
func messages(r *rand.Rand, n int) (all []byte) {
	for range n {
		size := r.IntN(3 * 16 << 10 >> (4 * r.IntN(4)))
		all = append(all, head(size)...)
		for range size {
			all = append(all, byte(r.Uint32()))
		}
	}
	return all
}

// pieces reads pieces of random sizes, which are small.
type pieces struct {
	io.Reader
	random *rand.Rand
	reads  int
}

func (p *pieces) Read(b []byte) (int, error) {
	p.reads++
	return p.Reader.Read(b[:min(len(b), 1+p.random.IntN(700))])
}

// testGate makes a gate before a body.
func testGate(t testing.TB, body io.Reader, memory share) *gate {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", io.NopCloser(body))
	if err != nil {
		t.Fatal(err)
	}
	return newGate(r, http.NewResponseController(nil), memory, time.Minute)
}

// TestGatesPassOnMessages has each byte pass, none before its message is wanted, and few buffers
// taken for many pieces.
func TestGatesPassOnMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		const count = 30
		want := messages(r, count)
		memory := newBudget(messageMemory)
		body := &pieces{bytes.NewReader(want), r, 0}
		g := testGate(t, body, memory.of("caller"))
		var got []byte
		reads, wanted := 0, 1
		for buf := make([]byte, 16<<10); ; reads++ {
			if g.came == wanted {
				wanted++
				g.ask() // the first one is wanted anyway
				if g.requests < g.came+1 {
					g.ask()
				}
			}
			n, err := g.Read(buf)
			got = append(got, buf[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, expected %d", len(got), len(want))
		}
		if most := count + len(want)/(16<<10) + 1; reads > most {
			t.Errorf("%d buffers for %d pieces, expected %d", reads, body.reads, most)
		}
		_ = g.Close()
		if n := memory.inUse(); n != 0 {
			t.Errorf("%d bytes are kept after the end", n)
		}
	}
}

// TestGatesHoldBack has a second message wait until the call wants it, and a third one until there
// is memory.
func TestGatesHoldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 100
		body := strings.Repeat(string(head(size))+strings.Repeat("x", size), 3)
		memory := newBudget(2 * size * messageCost)
		g := testGate(t, strings.NewReader(body), memory.of("caller"))
		read := func() <-chan error {
			c := make(chan error, 1)
			go func() {
				_, err := g.Read(make([]byte, 16<<10))
				c <- err
			}()
			synctest.Wait()
			return c
		}
		g.isStream = true
		g.ask()
		<-read()
		second := read()
		if len(second) != 0 {
			t.Fatal("a message came that was not wanted")
		}
		other := memory.of("another")
		if err := other.take(size); err != nil {
			t.Fatal(err)
		}
		g.ask()
		synctest.Wait()
		if len(second) != 0 {
			t.Fatal("a message came without memory")
		}
		other.give(size)
		if err := <-second; err != nil {
			t.Error(err)
		}
		if err := other.take(size); err != nil {
			t.Fatal(err)
		}
		third := read()
		g.ask()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if p := problemOf(g.err); p.name() != overShare.name || len(third) != 0 {
			t.Errorf("%v: expected that the caller has its share", g.err)
		}
		_ = g.Close()
		if err := <-third; err == nil || memory.inUse() != size {
			t.Errorf("%v, %d bytes", err, memory.inUse())
		}
	})
}

// FuzzGate has a body of anything. What passes is the beginning of it, and no more than memory
// is there for.
func FuzzGate(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	f.Add(messages(r, 3), 2)
	f.Add(head(maxMessage+1), 1)
	f.Add(append(head(5), "half"...), 1)
	f.Add([]byte("\x01\x00\x00\x00\x01x"), 1)
	f.Add([]byte("\x00\x00"), 1)
	f.Fuzz(func(t *testing.T, body []byte, wanted int) {
		memory := newBudget(messageMemory)
		g := testGate(t, iotest.HalfReader(bytes.NewReader(body)), memory.of("caller"))
		for range min(max(wanted, 0), 1000) {
			g.ask()
		}
		var got []byte
		done := make(chan struct{})
		go func() {
			defer close(done)
			for buf := make([]byte, 16<<10); ; {
				n, err := g.Read(buf)
				got = append(got, buf[:n]...)
				if err != nil {
					return
				}
				if memory.inUse() > messageMemory/2 {
					t.Errorf("%d bytes of memory are taken", memory.inUse())
				}
			}
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Millisecond): // it waits for the call
			_ = g.Close()
			<-done
		}
		_ = g.Close()
		if !bytes.HasPrefix(body, got) {
			t.Errorf("%x passed of %x", got, body)
		}
		if n := memory.inUse(); n != 0 {
			t.Errorf("%d bytes are kept after the end", n)
		}
	})
}

// call begins a call of gRPC whose body is made by hand.
func (s *testServer) call(t *testing.T, c *http.Transport, token, method string, body io.Reader) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/unwindd.v1.Unwindd/"+method, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", callType)
	r.Header.Set("Te", "trailers")
	r.Header.Set("Authorization", "Bearer "+token)
	go func() {
		if answer, err := c.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body) // it ends with the call
			_ = answer.Body.Close()
		}
	}()
}

// heap returns the bytes in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // in range
}

// TestMessagesThatNeverEndTakeLittleMemory has one caller begin many large messages at many
// methods, and send most of each.
func TestMessagesThatNeverEndTakeLittleMemory(t *testing.T) {
	o := testOptions(t)
	o.Tokens, o.Idle = hogAndHonest(), 2*time.Second
	s := start(t, o)
	c := plainHTTP2()
	defer c.CloseIdleConnections()
	before := heap()
	const size, sent, calls = 8 << 20, 6 << 20, 8
	zeros := make([]byte, sent)
	for range calls {
		for _, method := range []string{"Stack", "PutObject", "Symbolize", "FindObjects", "Walk"} {
			s.call(t, c, hogToken, method, io.MultiReader(bytes.NewReader(head(size)), bytes.NewReader(zeros), silence{t.Context()}))
		}
	}
	most := int64(0)
	for range 30 {
		time.Sleep(20 * time.Millisecond)
		most = max(most, heap()-before)
	}
	if all := int64(5 * calls * sent); most > all/3 {
		t.Errorf("%d MiB of memory are used for %d MiB that were sent", most>>20, all>>20)
	}
	if answer, text := s.postAs(t, honestToken, "/v1/stack", mixed); answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", answer.Status, text)
	}
	until(t, "the end of all calls", func() bool { return s.requests.inUse() == 0 })
	if n := s.memory.inUse(); n != 0 {
		t.Errorf("%d bytes are kept after the end", n)
	}
}

// silence reads nothing until a test ends.
type silence struct{ ctx context.Context }

func (s silence) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, io.EOF
}

// TestCallsHaveDeadlinesFromTheirFirstByte has each method wait for its first message no longer
// than a caller may be silent, and for a message that comes slowly.
func TestCallsHaveDeadlinesFromTheirFirstByte(t *testing.T) {
	o := testOptions(t)
	o.Idle = 300 * time.Millisecond
	s := start(t, o)
	c := pb.NewUnwinddClient(s.dial(t))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	wantSilent := func(what string, err error) {
		if st := status.Convert(err); st.Code() != codes.DeadlineExceeded || !strings.Contains(st.Message(), "nothing came") {
			t.Errorf("%s: %v", what, err)
		}
	}
	stack, err := c.Stack(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = stack.Recv()
	wantSilent("Stack", err)
	walk, err := c.Walk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = walk.Recv()
	wantSilent("Walk", err)
	put, err := c.PutObject(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var m pb.PutObjectResponse
	wantSilent("PutObject", put.RecvMsg(&m))
	symbolize, err := c.Symbolize(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = symbolize.Recv()
	wantSilent("Symbolize", err)

	slow, err := c.Stack(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = slow.Send(&pb.StackRequest{Part: &pb.StackRequest_Options{Options: &pb.StackOptions{}}}) // receiving says why
	go func() {
		for slow.Send(&pb.StackRequest{Part: &pb.StackRequest_Data{Data: []byte{1}}}) == nil {
			time.Sleep(o.Idle / 10)
		}
	}()
	_, err = slow.Recv()
	wantSilent("a byte in each message", err)
	until(t, "the end of all calls", func() bool { return s.requests.inUse() == 0 })
}

// TestBodiesHaveALeastRate has a body end that comes by a byte now and then.
func TestBodiesHaveALeastRate(t *testing.T) {
	o := testOptions(t)
	o.Idle = 300 * time.Millisecond
	s := start(t, o)
	for _, kind := range []string{"Content-Length: 1000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"} {
		c := s.connect(t)
		if _, err := io.WriteString(c, "POST /v1/stack HTTP/1.1\r\nHost: localhost\r\n"+kind); err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				if _, err := io.WriteString(c, "1\r\nx\r\n"); err != nil {
					return
				}
				time.Sleep(o.Idle / 10)
			}
		}()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%q: %v", kind, err)
			continue
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusRequestTimeout {
			t.Errorf("%q: %s", kind, answer.Status)
		}
	}
	until(t, "the end of all requests", func() bool { return s.requests.inUse() == 0 && s.budget.inUse() == 0 && s.budget.files.inUse() == 0 })
}

// TestAnswersHaveALeastRate has callers that read nothing of long answers: they end, by HTTP/1
// and by gRPC.
func TestAnswersHaveALeastRate(t *testing.T) {
	o := testOptions(t)
	o.Idle = 300 * time.Millisecond
	s := start(t, o)
	large := hungry(t)
	c := s.connect(t)
	if _, err := fmt.Fprintf(c, "POST /v1/stack HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(large), large); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st, err := pb.NewUnwinddClient(s.dial(t)).Stack(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&pb.StackRequest{Part: &pb.StackRequest_Options{Options: &pb.StackOptions{}}}); err != nil {
		t.Fatal(err)
	}
	if err := st.Send(&pb.StackRequest{Part: &pb.StackRequest_Data{Data: large}}); err != nil {
		t.Fatal(err)
	}
	_ = st.CloseSend()
	// One that pipelines small requests reads nothing either.
	p := s.connect(t)
	go func() {
		for {
			if _, err := io.WriteString(p, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 100)); err != nil {
				return
			}
		}
	}()
	until(t, "all requests", func() bool { return s.requests.inUse() > 0 && strings.Contains(s.log.String(), "stack:") })
	until(t, "the end of all requests", func() bool { return s.requests.inUse() == 0 && s.budget.inUse() == 0 })
}

// TestOneCallerLeavesRoomOnDisk has a caller hold as many bytes as it gets, and another served.
func TestOneCallerLeavesRoomOnDisk(t *testing.T) {
	o := testOptions(t)
	o.Tokens, o.Spool = hogAndHonest(), 1<<20
	s := start(t, o)
	for range 4 {
		c := s.connect(t)
		if _, err := io.WriteString(c, "POST /v1/stack HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+hogToken+"\r\nContent-Length: 500000\r\n\r\n"+strings.Repeat("x", 400_000)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "what the hog gets", func() bool { return s.budget.inUse() >= 400_000 })
	if answer, text := s.postAs(t, honestToken, "/v1/stack", mixed); answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", answer.Status, text)
	}
}

// TestOneCallerLeavesPlaces has a caller have as many requests under way as it gets, and another
// served.
func TestOneCallerLeavesPlaces(t *testing.T) {
	o := testOptions(t)
	o.Tokens, o.Connections = hogAndHonest(), 8
	s := start(t, o)
	c := plainHTTP2()
	defer c.CloseIdleConnections()
	for range 10 {
		s.call(t, c, hogToken, "Stack", silence{t.Context()})
	}
	until(t, "the share of the hog", func() bool { return s.requests.amountOf("hog") == 4 })
	answer, text := s.postAs(t, hogToken, "/v1/stack", mixed)
	wantProblem(t, answer, text, overShare, "its share of all requests")
	if answer.Header.Get("Retry-After") == "" {
		t.Error("when to come again is not said")
	}
	if answer, text := s.postAs(t, honestToken, "/v1/stack", mixed); answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", answer.Status, text)
	}
	_, err := pb.NewUnwinddClient(s.dial(t)).FindObjects(withToken(t, hogToken), &pb.FindObjectsRequest{})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v, expected that the caller has its share", err)
	}
}

// waitingOf returns how many connections of an address wait for a request.
func (l *connections) waitingOf(address string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.waiting[address]; line != nil {
		return int64(line.Len())
	}
	return 0
}

// TestIdleConnectionsGiveWay has connections without a request closed when others come, those that
// wait for the longest time first, and one with a request kept.
func TestIdleConnectionsGiveWay(t *testing.T) {
	o := testOptions(t)
	o.Connections = 16
	s := start(t, o)
	busy := s.connect(t)
	body := file(t, mixed)
	if _, err := fmt.Fprintf(busy, "POST /v1/stack HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:100]); err != nil {
		t.Fatal(err)
	}
	until(t, "a request", func() bool { return s.requests.inUse() == 1 })
	var idle []net.Conn
	for i := range 40 {
		c := s.connect(t)
		if i%2 == 0 { // every other one has not said anything
			if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("connection %d: %v", i, err)
			}
			_ = answer.Body.Close()
			// An answer arrives before its connection counts as waiting.
			until(t, "all connections but one wait", func() bool { return s.connections.waitingOf("127.0.0.1") == s.connections.budget.inUse()-1 })
		}
		idle = append(idle, c)
	}
	if n := s.connections.budget.inUse(); n > 8 {
		t.Errorf("%d connections of one address are open, expected 8", n)
	}
	for i, c := range idle[:30] {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("connection %d: %v, expected that it was closed", i, err)
		}
	}
	if _, err := busy.Write(body[100:]); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(busy), nil)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%v: expected that who has a request stays", err)
	}
	if err == nil {
		_ = answer.Body.Close()
	}
	if n := s.gauge(t, "unwindd_connections"); n > 8 {
		t.Errorf("%d connections are counted", n)
	}
}

// TestConnectionsOfHTTP2GiveWay likewise.
func TestConnectionsOfHTTP2GiveWay(t *testing.T) {
	o := testOptions(t)
	o.Connections = 16
	s := start(t, o)
	for range 30 {
		c := s.connect(t)
		if _, err := io.WriteString(c, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
			t.Fatal(err)
		}
		if _, err := http2.NewFramer(io.Discard, c).ReadFrame(); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.connections.budget.inUse(); n > 8 {
		t.Errorf("%d connections of one address are open, expected 8", n)
	}
	if _, err := pb.NewUnwinddClient(s.dial(t)).FindObjects(t.Context(), &pb.FindObjectsRequest{}); err != nil {
		t.Error(err)
	}
}

// TestWalksAreBoundedAsAWhole has a caller answer in time, without end.
func TestWalksAreBoundedAsAWhole(t *testing.T) {
	o := testOptions(t)
	o.Time, o.Idle = time.Second, 200*time.Millisecond
	s := start(t, o)
	good, head := headOf(t, openCrash(t, crashExe))
	w := s.walk(t, good, head)
	w.wantStatus(codes.DeadlineExceeded, "all of them together", func(q *pb.Question) {
		part := &pb.WalkRequest{Part: &pb.WalkRequest_Answer{Answer: &pb.Answer{Number: q.Number, About: &pb.Answer_File{File: &pb.FileAnswer{Data: make([]byte, leastBytes)}}}}}
		go func() {
			for range 300 {
				if w.Send(part) != nil {
					return
				}
				time.Sleep(o.Idle / 3)
			}
		}()
	})
}

// TestChunksEndTheConnection has what follows a body in chunks, which also has a length, not taken
// for a request.
func TestChunksEndTheConnection(t *testing.T) {
	s := start(t, testOptions(t))
	c := s.connect(t)
	if _, err := io.WriteString(c, "POST /v1/stack HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	all, err := io.ReadAll(c)
	if n := bytes.Count(all, []byte("HTTP/1.1 ")); n != 1 || err != nil {
		t.Errorf("%d answers, %v:\n%s", n, err, all)
	}
}

// TestAddressesAreCallers has a network of IPv6, and this machine, be one.
func TestAddressesAreCallers(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7:80": "192.0.2.7", "[::ffff:192.0.2.7]:80": "192.0.2.7", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64",
		"127.3.2.1:80": "127.0.0.1", "[::1]:80": "127.0.0.1", "@": "@",
	} {
		if got := addressName(text); got != want {
			t.Errorf("%s is %s, expected %s", text, got, want)
		}
	}
}

// plainHTTP2 speaks HTTP/2 without TLS.
func plainHTTP2() *http.Transport {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{Protocols: &protocols}
}

// withToken returns a context for calls of a caller.
func withToken(t *testing.T, token string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}
