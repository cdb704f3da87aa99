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
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := readResult(id, b); err == nil && (r.Version != version || r.Size < 0 || len(r.Data) > len(b)) {
			t.Errorf("%+v is taken", r)
		}
		if got, err := readJob(b); err == nil && (!IsID(got.id()) || got.Size < 0 || len(got.Data) > len(b)) {
			t.Errorf("%+v is taken", got)
		}
	})
}
