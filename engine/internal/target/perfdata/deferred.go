// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"cmp"
	"slices"
)

// deferredKey is the kernel's name of a user stack's chain that it writes when the thread
// is in user mode again: once for all samples that it took of the thread until then.
type deferredKey struct {
	tid    int // -1 where records have none
	cookie uint64
}

// deferredChain is the chain of a CALLCHAIN_DEFERRED record.
type deferredChain struct {
	time  uint64
	words []byte // addresses and markers, of the file's mapping
}

// scanDeferred adds the chain of a CALLCHAIN_DEFERRED record: a cookie, the number of
// words, and the words.
func (f *File) scanDeferred(r *record, index int, time uint64) {
	d := sampleFields{fields: fields{b: f.attrs.body(r, f.order), order: f.order}}
	cookie, n := d.u64(), d.u64()
	words := d.words(n)
	if d.isShort {
		f.problems.add("%s: %v: %d words, which go beyond its record of %d bytes", f.place(index, r.offset), r.kind, n, len(r.data))
		return
	}
	if f.deferred == nil {
		f.deferred = map[deferredKey][]deferredChain{}
	}
	key := deferredKey{f.attrs.thread(r, f.order), cookie}
	f.deferred[key] = append(f.deferred[key], deferredChain{time, words})
}

// sortDeferred sorts the chains of each thread and cookie by time, as the buffers of
// several CPUs are not.
func (f *File) sortDeferred() {
	for _, list := range f.deferred {
		slices.SortStableFunc(list, func(a, b deferredChain) int { return cmp.Compare(a.time, b.time) })
	}
}

// mergeDeferred completes the chain of a sample that ends with a marker and a cookie with
// the first chain of its thread and cookie that is not earlier, if there is one.
func (f *File) mergeDeferred(s *Sample) {
	n := s.Chain.Len()
	if n < 2 || s.Chain.At(n-2) != contextMarker(640) {
		return
	}
	cookie := s.Chain.At(n - 1)
	list := f.deferred[deferredKey{s.TID, cookie}]
	if list == nil {
		list = f.deferred[deferredKey{-1, cookie}]
	}
	if s.Time == 0 && len(list) > 1 {
		return // cookies are used again, and nothing says which is the sample's
	}
	i, _ := slices.BinarySearchFunc(list, s.Time, func(c deferredChain, t uint64) int { return cmp.Compare(c.time, t) })
	if i == len(list) {
		return
	}
	raw := slices.Clip(s.Chain.raw[:8*(n-2)])
	chain := Chain{list[i].words, f.order}
	if chain.Len() > 0 && chain.At(0) < maxContext {
		raw = f.order.append64(raw, contextMarker(512))
	}
	s.Chain.raw = append(raw, chain.raw...)
}

// thread returns the thread in the sample_id of a record other than SAMPLE; -1 where it
// has none.
func (a *attrs) thread(r *record, order endian) int {
	index, _ := a.eventOf(r, order)
	if index < 0 {
		return -1
	}
	attr := &a.list[index]
	offset := len(r.data) - attr.layout.tail
	if attr.Flags&FlagSampleIDAll == 0 || attr.SampleType&SampleTID == 0 || offset < recordHeader {
		return -1
	}
	return int(int32(order.u32(r.data[offset+4:])))
}
