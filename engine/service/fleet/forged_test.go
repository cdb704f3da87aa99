// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// This file has messages and files that somebody has put into the streams himself, under names that
// are not theirs.

// jobOf is the job that submit submits for a text.
func jobOf(t *testing.T, text string) *job {
	t.Helper()
	task, err := NewTask("stack", &pb.StackOptions{Format: "json", Locals: true})
	if err != nil {
		t.Fatal(err)
	}
	j := &job{Version: version, Task: task, Submitted: time.Now().UTC(), Data: []byte(text)}
	if j.Input, j.Size, err = digest(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return j
}

// publish publishes a message to a stream.
func publish(t *testing.T, q *Queue, subject string, message []byte) {
	t.Helper()
	if _, err := q.js.Publish(t.Context(), subject, message); err != nil {
		t.Fatal(err)
	}
}

func packed(t *testing.T, about any, data []byte) []byte {
	t.Helper()
	b, err := pack(about, data)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWhatIsNoJobSettlesNothing has messages under the ID of a job that are not that job: its
// submitter gets its report all the same.
func TestWhatIsNoJobSettlesNothing(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	other, newer, part := jobOf(t, "another"), jobOf(t, "right 2"), jobOf(t, "right 3")
	newer.Version = 99
	part.Kind, part.Part = "profile", &Part{Index: 1 << 40, Count: 2}
	late := jobOf(t, "right 4")
	late.Deadline, late.Data = time.Unix(1, 0), []byte("wrong 4") // the right ID, and other bytes than the input's
	for i, message := range [][]byte{[]byte("garbage"), packed(t, other, other.Data), packed(t, newer, newer.Data), packed(t, part, nil), packed(t, late, late.Data), nil} {
		text := fmt.Sprint("right ", i)
		id := jobOf(t, text).id()
		publish(t, q, jobsPrefix+"high."+id, message)
		publish(t, q, jobsPrefix+"normal."+id, message) // where the right one will wait
		submit(t, q, text, How{})
	}
	_, stop := work(t, q, newDoer(), 1)
	for i := range 6 {
		text := fmt.Sprint("right ", i)
		id := jobOf(t, text).id()
		if r := wait(t, q, id)[id]; r.State != Done || report(t, q, r) != strings.ToUpper(text) {
			t.Errorf("%s: %+v, %+v", text, r, r.Problem)
		}
	}
	if n := pending(t, q); n != 0 {
		t.Errorf("%d messages are left", n)
	}
	stop()
}

// TestAForgedResultIsReplaced has a message in the place of a result that is none.
func TestAForgedResultIsReplaced(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	id := jobOf(t, "right").id()
	publish(t, q, resultsPrefix+id, []byte("garbage"))
	if _, err := q.Result(t.Context(), id); !errors.Is(err, errForged) {
		t.Errorf("%v", err)
	}
	if s := submit(t, q, "right", How{}); s.Known {
		t.Errorf("%+v", s)
	}
	publish(t, q, resultsPrefix+id, packed(t, &Result{Version: version, ID: strings.Repeat("ab", 16), State: Done}, nil))
	work(t, q, newDoer(), 1)
	if r := wait(t, q, id)[id]; r.State != Done || report(t, q, r) != "RIGHT" {
		t.Errorf("%+v", r)
	}
}

// TestADeadlineIsItsSubmittersAlone has the same job with a deadline that has passed, that passes
// while it waits, and without one.
func TestADeadlineIsItsSubmittersAlone(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	_, stop := work(t, q, newDoer(), 1)
	first := submit(t, q, "text", How{Deadline: time.Unix(1, 0)})
	if r := wait(t, q, first.ID)[first.ID]; r.State != Expired {
		t.Fatalf("%+v", r)
	}
	if s := submit(t, q, "text", How{}); s.Known {
		t.Errorf("%+v, expected a new job", s)
	}
	if r := wait(t, q, first.ID)[first.ID]; r.State != Done {
		t.Errorf("%+v", r)
	}
	stop()
	waits := submit(t, q, "waits", How{Deadline: time.Unix(1, 0)})
	submit(t, q, "waits", How{})
	if s := submit(t, q, "waits", How{Deadline: time.Unix(1, 0)}); !s.Known {
		t.Errorf("%+v, expected the one without a deadline", s)
	}
	canceled := submit(t, q, "canceled", How{})
	if ok, err := q.Cancel(t.Context(), canceled.ID); !ok || err != nil {
		t.Fatal(err)
	}
	if s := submit(t, q, "canceled", How{}); s.Known {
		t.Errorf("%+v, expected a new job", s)
	}
	work(t, q, newDoer(), 1)
	for id, r := range wait(t, q, waits.ID, canceled.ID) {
		if r.State != Done {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// TestAWrongInputIsReplaced has other bytes in the store under the SHA-256 of an input.
func TestAWrongInputIsReplaced(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	large := strings.Repeat("large ", 1<<17)
	j := jobOf(t, large)
	if _, err := q.inputs.Put(t.Context(), jetstream.ObjectMeta{Name: j.Input}, strings.NewReader("wrong")); err != nil {
		t.Fatal(err)
	}
	submit(t, q, large, How{})
	work(t, q, newDoer(), 1)
	if r := wait(t, q, j.id())[j.id()]; r.State != Done || r.Tries != 1 || report(t, q, r) != strings.ToUpper(large) {
		t.Errorf("%+v", r)
	}
}
