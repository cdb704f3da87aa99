// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzMessages reads messages that others have put into the queue.
func FuzzMessages(f *testing.F) {
	j := &job{Version: version, Task: Task{"stack", json.RawMessage(`{"format":"json"}`)}, Input: string(make([]byte, 64)), Size: 3, Data: []byte("abc")}
	for _, m := range []any{j, &Result{Version: version, ID: "0123456789abcdef0123456789abcdef", State: Done, Data: []byte("x"), Size: 1, Ended: time.Unix(0, 0)}} {
		b, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"version":1,"size":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := readResult("0123456789abcdef0123456789abcdef", b); err == nil && (r.Version != version || r.Size < 0) {
			t.Errorf("%+v is taken", r)
		}
		var got job
		if json.Unmarshal(b, &got) == nil && got.check() == nil {
			if !IsID(got.id()) || got.Size < 0 {
				t.Errorf("%+v is taken", got)
			}
		}
	})
}
