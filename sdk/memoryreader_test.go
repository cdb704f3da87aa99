// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"errors"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// pagedMemory is memory from start on.
type pagedMemory struct {
	sdk.Engine
	start uint64
	data  []byte
	calls int
}

func (m *pagedMemory) ReadMemory(_ context.Context, r sdk.MemoryRange, buf []byte) (int, error) {
	m.calls++
	offset := r.Address - m.start
	if offset >= uint64(len(m.data)) {
		return 0, errors.New("not there")
	}
	n := copy(buf, m.data[offset:])
	if n < len(buf) {
		return n, errors.New("ends")
	}
	return n, nil
}

func TestMemoryReader(t *testing.T) {
	m := &pagedMemory{start: 0x10ffc, data: make([]byte, 0x3000)}
	copy(m.data, []byte{1, 2, 3, 4, 5, 6, 7, 8, 'a', 'b', 0})
	copy(m.data[0x2ffe:], "xy")
	r := sdk.NewMemoryReader(t.Context(), m, sdk.LittleEndian, 64)
	if n, err := r.Pointer(0x10ffc); err != nil || n != 0x0807060504030201 {
		t.Errorf("across pages: %#x, %v", n, err)
	}
	if s, err := r.Text(0x11004, 8); err != nil || s != "ab" {
		t.Errorf("text: %q, %v", s, err)
	}
	calls := m.calls
	if n, err := r.Uint(0x11001, 2); err != nil || n != 0x0706 {
		t.Errorf("in a page: %#x, %v", n, err)
	}
	if m.calls != calls {
		t.Errorf("a page that is kept was read again: %d calls", m.calls-calls)
	}
	if s, err := r.Text(0x13ffa, 64); err == nil {
		t.Errorf("text without an end: %q", s)
	}
	for _, address := range []uint64{0, 0x13ffb, 1 << 40, ^uint64(0) - 3} {
		if _, err := r.Pointer(address); err == nil {
			t.Errorf("there is nothing at %#x", address)
		}
	}
	r.Prefetch([]uint64{0, ^uint64(0), 0x11000, 0x12000}, 16)
	if n, err := r.Uint(0x11000, 1); err != nil || n != 5 {
		t.Errorf("after Prefetch: %d, %v", n, err)
	}
}

func TestPageListBeginsWithTheLastCallsPages(t *testing.T) {
	m := &pagedMemory{start: 0x10000, data: make([]byte, 0x10000)}
	var l sdk.PageList
	first := sdk.NewMemoryReader(t.Context(), m, sdk.LittleEndian, 64)
	l.Prefetch(first)
	for address := uint64(0x10000); address < 0x20000; address += 0x2000 {
		if _, err := first.Pointer(address); err != nil {
			t.Fatal(err)
		}
	}
	l.Keep(first)
	second := sdk.NewMemoryReader(t.Context(), m, sdk.LittleEndian, 64)
	l.Prefetch(second)
	m.calls = 0
	if _, err := second.Pointer(0x1e008); err != nil || m.calls > 0 {
		t.Errorf("%d calls, %v", m.calls, err)
	}
	if _, err := second.Pointer(0x11000); err != nil || m.calls != 1 {
		t.Errorf("a page that is not in the list: %d calls, %v", m.calls, err)
	}
}
