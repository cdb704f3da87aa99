// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// TestCallersHaveTurns has one caller with many requests and two with few: after each
// request of the one comes one of each other.
func TestCallersHaveTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 100, 100)
		if err := q.enter(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		for _, caller := range []string{"many", "many", "many", "many", "few", "few", "one"} {
			go func() {
				if err := q.enter(t.Context(), caller); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, caller)
				mu.Unlock()
				time.Sleep(time.Second)
				q.leave(caller)
			}()
			synctest.Wait()
		}
		if n := q.length(); n != 7 {
			t.Errorf("%d wait, expected 7", n)
		}
		q.leave("first")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []string{"many", "few", "one", "many", "few", "many", "many"}; !slices.Equal(order, want) {
			t.Errorf("%v, expected %v", order, want)
		}
		if q.free != 1 || q.length() != 0 || len(q.addresses)+len(q.turns)+len(q.lines)+len(q.waits) != 0 {
			t.Errorf("%d places, %d wait, turns of %v and %v, lines %v", q.free, q.length(), q.addresses, q.turns, q.lines)
		}
	})
}

// TestAddressesHaveTurns has many callers of one address wait before two of another: the addresses
// take turns, and the callers of each do.
func TestAddressesHaveTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 100, 100)
		if err := q.enter(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		for _, w := range []who{{"here", "a"}, {"here", "a"}, {"here", "b"}, {"here", "c"}, {"there", "d"}, {"there", "d"}, {"there", "a"}} {
			ctx := context.WithValue(t.Context(), requestKey, &request{caller: w.caller, address: w.address})
			go func() {
				if err := q.enter(ctx, w.caller); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, w.caller+" "+w.address)
				mu.Unlock()
				time.Sleep(time.Second)
				q.leave(w.caller)
			}()
			synctest.Wait()
		}
		q.leave("first")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []string{"a here", "d there", "b here", "a there", "c here", "d there", "a here"}; !slices.Equal(order, want) {
			t.Errorf("%v, expected %v", order, want)
		}
		if q.free != 1 || len(q.from)+len(q.addresses)+len(q.turns)+len(q.lines)+len(q.waits) != 0 {
			t.Errorf("%d places, %v, turns of %v and %v, lines %v", q.free, q.from, q.addresses, q.turns, q.lines)
		}
	})
}

// TestWhoHasManyWaitingGivesWay has callers of one address wait in all places, before two others come.
func TestWhoHasManyWaitingGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 4, 3)
		enter := func(caller, address string) (*error, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), requestKey, &request{caller: caller, address: address}))
			is := new(error)
			*is = errWaits
			go func() { *is = q.enter(ctx, caller) }()
			synctest.Wait()
			return is, cancel
		}
		enter("a", "here")
		var waiting []*error
		var cancels []context.CancelFunc
		for _, caller := range []string{"b", "a", "a", "a", "e", "f"} { // e and f have no room
			is, cancel := enter(caller, "here")
			waiting, cancels = append(waiting, is), append(cancels, cancel)
		}
		first, _ := enter("c", "there")
		second, _ := enter("d", "elsewhere")
		third, _ := enter("c", "there") // as many as here
		var got []error
		for _, is := range append(waiting, first, second, third) {
			got = append(got, *is)
		}
		if want := []error{errWaits, errWaits, errBusy, errBusy, errBusy, errBusy, errWaits, errWaits, errBusy}; !slices.Equal(got, want) {
			t.Errorf("%v, expected %v", got, want)
		}
		for _, cancel := range cancels {
			cancel()
		}
		q.leave("a") // c has its place
		synctest.Wait()
		if *first != nil || q.length() != 1 || q.free != 0 {
			t.Errorf("%v, %d wait, %d free", *first, q.length(), q.free)
		}
		q.leave("c")
		synctest.Wait()
		q.leave("d")
		if *second != nil || q.free != 1 || len(q.has)+len(q.from)+len(q.addresses)+len(q.turns)+len(q.lines)+len(q.waits) != 0 {
			t.Errorf("%v, %d free, %v, %v", *second, q.free, q.has, q.lines)
		}
	})
}

// errWaits is the error of a request that waits.
var errWaits = errors.New("it waits")

// TestWhoWaitsMayGo takes requests out of the queue, from each place in it.
func TestWhoWaitsMayGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, 5, 3)
		if err := q.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var cancels []context.CancelFunc
		results := make(chan error, 5)
		for _, caller := range []string{"a", "a", "a", "b", "c"} {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			go func() { results <- q.enter(ctx, caller) }()
			synctest.Wait()
		}
		if err := q.enter(t.Context(), "a"); !errors.Is(err, errBusy) {
			t.Errorf("%v, expected that it is busy", err)
		}
		for _, i := range []int{1, 3, 0, 4, 2} {
			cancels[i]()
			if err := <-results; !errors.Is(err, context.Canceled) {
				t.Errorf("%d: %v", i, err)
			}
		}
		q.leave("a")
		if q.free != 1 || q.length() != 0 || len(q.addresses)+len(q.turns)+len(q.lines)+len(q.waits) != 0 {
			t.Errorf("%d places, %d wait, turns of %v and %v, lines %v", q.free, q.length(), q.addresses, q.turns, q.lines)
		}
	})
}

// TestReportsAreReadAsTheyWereWritten has reports of many sizes read while they are
// written, in parts of any size.
func TestReportsAreReadAsTheyWereWritten(t *testing.T) {
	dir := t.TempDir()
	b := newBudget(1 << 30)
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 1000, inMemory - 1, inMemory, inMemory + 1, 3*inMemory + 7} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(r.Uint32())
		}
		s := newSpool(dir, b.of("caller"))
		go func() {
			for rest := want; len(rest) > 0; {
				n := min(1+r.IntN(70_000), len(rest))
				if _, err := s.Write(rest[:n]); err != nil {
					t.Error(err)
				}
				rest = rest[n:]
			}
			s.finish(nil)
		}()
		if err := s.begun(); err != nil {
			t.Error(err)
		}
		if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d bytes, %v", size, len(got), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := b.inUse(); n != 0 {
		t.Errorf("%d bytes of the budget are used", n)
	}
}

// TestReportsThatEndEarly are never taken for whole ones.
func TestReportsThatEndEarly(t *testing.T) {
	for _, cause := range []error{errors.New("the worker died"), io.EOF, io.ErrUnexpectedEOF} {
		s := newSpool(t.TempDir(), newBudget(1<<20).of("caller"))
		if _, err := s.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
		if !s.Restart() {
			t.Error("what nobody has read cannot be begun anew")
		}
		if _, err := s.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
		s.finish(cause)
		if err := s.begun(); err == nil {
			t.Errorf("%v: a report that ended early has begun", cause)
		}
		if got, err := io.ReadAll(s); err == nil || string(got) != "half" {
			t.Errorf("%v: %q, %v", cause, got, err)
		}
		if s.Restart() {
			t.Error("what somebody has read is begun anew")
		}
		_ = s.Close()
		if _, err := s.Write([]byte("more")); err == nil {
			t.Error("a report that is closed takes more")
		}
	}
}

// TestABudgetIsForAll refuses what all files together have no room for.
func TestABudgetIsForAll(t *testing.T) {
	b := newBudget(300)
	first, err := newUpload(t.TempDir(), b.of("caller"), 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Write(make([]byte, 100)); err != nil {
		t.Error(err)
	}
	var large *tooLargeError
	if _, err := first.Write(make([]byte, 1)); !errors.As(err, &large) {
		t.Error(err)
	}
	second, err := newUpload(t.TempDir(), b.of("another"), 200)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Write(make([]byte, 101)); !errors.Is(err, errNoRoom) {
		t.Error(err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := second.Write(make([]byte, 101)); err != nil {
		t.Error(err)
	}
	if err := second.Close(); err != nil || b.inUse() != 0 {
		t.Error(err, b.inUse())
	}
}

// TestParametersAreMembers reads parameters of each kind.
func TestParametersAreMembers(t *testing.T) {
	var got pb.StackOptions
	lane, frames := uint32(3), uint32(0)
	want := &pb.StackOptions{
		Thread: "w0", Crashed: true, Top: 5, Lane: &lane, Globals: []string{"a", "b"}, MaxFrames: &frames, NoInlines: true,
	}
	err := setParameters(&got, map[string][]string{
		"thread": {"w0"}, "crashed": {""}, "top": {"5"}, "lane": {"3"}, "globals": {"a", "b"}, "max-frames": {"0"}, "no_inlines": {"1"}, "raw": {"false"},
	})
	if err != nil || !proto.Equal(&got, want) {
		t.Errorf("%v: %v, expected %v", err, &got, want)
	}
}

// TestNamesAreNoPaths has names of targets lose what is before them.
func TestNamesAreNoPaths(t *testing.T) {
	for name, want := range map[string]string{
		"core": "core", "/var/crash/core.1": "core.1", `C:\dumps\a.dmp`: "a.dmp", "": "target", "..": "target", "/": "target", "a/..": "target",
		string(make([]byte, 300)): "target",
	} {
		if got := nameOf(name, "target"); got != want {
			t.Errorf("%q is called %q, expected %q", name, got, want)
		}
	}
}
