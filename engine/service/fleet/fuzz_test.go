// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzMessages reads messages that others have put into the queue.
func FuzzMessages(f *testing.F) {
	const id = "0123456789abcdef0123456789abcdef"
	add := func(about any, data string) {
		b, err := pack(about, []byte(data))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	add(&job{Version: version, Task: Task{Kind: "stack", Options: json.RawMessage(`{"format":"json"}`)}, Input: string(make([]byte, 64)), Size: 3}, "abc")
	add(&Result{Version: version, ID: id, State: Done, Size: 1, Ended: time.Unix(0, 0)}, "x")
	add(json.RawMessage(`{"version":1,"size":-1}`), "")
	f.Add([]byte{0, 0, 0, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, '{', '}'})
	add(&question{About: askSubmit, Kind: "stack", Options: json.RawMessage(`{"format":"json"}`), SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", Size: 3, Priority: "high"}, "abc")
	add(&question{About: askPut, Store: deskObjects, Name: "0102.executable", SHA256: id + id, Size: 1 << 62}, "")
	f.Fuzz(func(t *testing.T, b []byte) {
		about := &question{}
		if data, err := unpack(b, about); err == nil {
			j, err := about.job(data)
			if err == nil && (j.Part != nil || len(j.Options) > 6*maxOptions || len(data) > maxInline) {
				t.Errorf("%+v is taken", about)
			}
			if err == nil {
				if _, err := readJobOf(j.id(), packed(t, j, j.Data)); err != nil {
					t.Errorf("a job that a desk takes and no worker: %v", err)
				}
			}
		}
		if r, err := readResult(id, b); err == nil && (r.Version != version || r.Size < 0 || len(r.Data) > len(b)) {
			t.Errorf("%+v is taken", r)
		}
		if got, err := readJob(b); err == nil && (!IsID(got.id()) || got.Size < 0 || len(got.Data) > len(b)) {
			t.Errorf("%+v is taken", got)
		}
	})
}

// FuzzQuestions has a user ask a desk, which has a server of NATS behind it. Whatever he asks, the
// answer fits into a message, and the streams of another user stay as they were.
func FuzzQuestions(f *testing.F) {
	dir := f.TempDir()
	embedded(f, dir)
	q, err := Connect(f.Context(), Options{URL: ReadAddress(dir), Keep: Keep{Bytes: 64 << 20}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(q.Close)
	d := &desk{queue: q, name: "desk", busy: map[string]int{}, transfers: map[string]*transfer{}}
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of abc
	ask := func(user string, about *question, data string) []byte {
		b, err := pack(about, []byte(data))
		if err != nil {
			f.Fatal(err)
		}
		if user != "" {
			if _, _, err := d.handle(f.Context(), user, b); err != nil {
				f.Fatal(err)
			}
		}
		return b
	}
	job := &question{About: askSubmit, Kind: "stack", Options: json.RawMessage(`{"format":"json"}`), Priority: "normal", SHA256: sum, Size: 3}
	ask("bob", job, "abc")
	bob, err := q.of(f.Context(), "bob")
	if err != nil {
		f.Fatal(err)
	}
	const id = "0123456789abcdef0123456789abcdef"
	f.Add(ask("", job, "abc"))
	for about := range answers {
		f.Add(ask("", &question{About: about, ID: id, Store: deskInputs, Name: sum, SHA256: sum, Size: 3, Transfer: "x", Place: 1}, "abc"))
		f.Add(ask("", &question{About: about, Store: deskObjects, Name: "01092ed6.executable", SHA256: sum, Size: -1}, ""))
	}
	f.Add([]byte{0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, data, err := d.handle(t.Context(), "alice", b)
		if err == nil {
			message, err := pack(r, data)
			if err != nil || int64(len(message)) > q.conn.MaxPayload() {
				t.Errorf("an answer of %d bytes: %v", len(message), err)
			}
		}
		jobs, err := bob.jobs["normal"].Info(t.Context())
		if err != nil || jobs.State.Msgs != 1 || jobs.State.LastSeq != 1 {
			t.Errorf("the jobs of another user: %+v, %v", jobs, err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if len(d.transfers) > maxTransfers {
			t.Errorf("%d transfers", len(d.transfers))
		}
	})
}
