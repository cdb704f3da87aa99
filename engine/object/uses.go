// SPDX-License-Identifier: Apache-2.0

package object

import "unsafe"

// Retain adds a use of the object, which is open, and returns it: it stays open until Close was
// called once more. It may be called concurrently. An object that LaidOut made has no uses of its
// own: it is open as long as the original.
func (o *Object) Retain() *Object {
	o.retain()
	return o
}

// retain adds a use; false where there is none left, so that the object is closed.
func (o *Object) retain() bool {
	for {
		n := o.uses.Load()
		if n <= 0 {
			return false
		}
		if o.uses.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Close ends one use, of opening the object or of Retain. The last one unmaps the file, and no bytes
// that the object returned may be used any more. Close of an object without uses does nothing; but
// each user closes only once, since the uses are alike.
func (o *Object) Close() error {
	if o.laidOut || !o.release() {
		return nil
	}
	if o.forget != nil {
		o.forget()
	}
	return o.mapping.Close()
}

// IsShared reports whether another user has the object open, or may open it by its Store.
func (o *Object) IsShared() bool { return o.forget != nil || o.uses.Load() > 1 }

// release ends a use, and reports whether it was the last one.
func (o *Object) release() bool {
	for {
		n := o.uses.Load()
		if n <= 0 {
			return false
		}
		if o.uses.CompareAndSwap(n, n-1) {
			return n == 1
		}
	}
}

// ReleasePages removes the pages of a part of the mapped file from this process, as
// Mapping.ReleasePages does. Bytes that lie elsewhere stay as they are.
func (o *Object) ReleasePages(part []byte) {
	if o == nil || o.mapping == nil || len(part) == 0 {
		return
	}
	partStart, start := uintptr(unsafe.Pointer(unsafe.SliceData(part))), o.mapping.start()
	if partStart >= start && partStart-start < uintptr(len(o.mapping.data)) {
		o.mapping.ReleasePages(uint64(partStart-start), uint64(partStart-start)+uint64(len(part)))
	}
}
