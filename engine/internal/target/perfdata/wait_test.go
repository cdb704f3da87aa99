// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/unwindd/unwindd/engine/target"
)

func TestWaitsAreReadAsTheyWereWritten(t *testing.T) {
	for _, w := range []Wait{
		{State: 'S', Call: 35, HasCall: true, Memory: []byte{}},
		{State: 'D', Memory: []byte{}},
		{State: 'S', Call: 202, HasCall: true, HasFutex: true, Futex: target.FutexCall{Address: 1 << 40, Operation: 9, Value: 2, IsTimed: true}, MemoryStart: 1<<40 - 64, Memory: bytes.Repeat([]byte{7}, 128)},
	} {
		raw := w.Append(nil)
		got, ok := ReadWait(append(raw, 0, 0, 0, 0))
		if !ok || !reflect.DeepEqual(got, w) {
			t.Errorf("%+v, %v; expected %+v", got, ok, w)
		}
		for n := range raw {
			if _, ok := ReadWait(raw[:n]); ok {
				t.Errorf("%d of %d bytes are read", n, len(raw))
			}
		}
	}
}

func FuzzReadWait(f *testing.F) {
	w := Wait{State: 'S', HasCall: true, HasFutex: true, Memory: make([]byte, 16)}
	f.Add(w.Append(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if w, ok := ReadWait(raw); ok && len(w.Memory) > len(raw) {
			t.Error("memory that is not there")
		}
	})
}
