// SPDX-License-Identifier: Apache-2.0

package cpython

import "fmt"

// This file writes the locks of threading.

// lock writes a threading.Lock. Which thread has it is not recorded.
func (w *valueWriter) lock(c *class, address uint64, _ int) error {
	// Up to 3.13.0 a lock of the operating system and a list of references come before it; since then it is a mutex.
	place, most := w.r.layout.object.size, uint64(3)
	switch c.basicSize - int64(place) {
	case 8:
	case 24:
		place, most = place+16, 1
	default:
		return fmt.Errorf("class %s has objects of %d bytes, expected %d or %d", c.name, c.basicSize, place+8, place+24)
	}
	locked, err := w.r.uint(address, place, 1)
	if err != nil {
		return err
	}
	if locked > most {
		return fmt.Errorf("lock at %#x: locked is %d, expected %d at most", address, locked, most)
	}
	fmt.Fprintf(w, "<%s %s object at %#x>", lockedWord(locked&1 == 1), c.name, address)
	return nil
}

// reentrantLock writes a threading.RLock with the thread that has it, as threading.get_ident() knows that, and
// how often that thread has it.
func (w *valueWriter) reentrantLock(c *class, address uint64, _ int) error {
	head := w.r.layout.object.size
	if c.basicSize < int64(head)+24 {
		return fmt.Errorf("class %s has objects of %d bytes, expected %d at least", c.name, c.basicSize, head+24)
	}
	owner, err := w.r.pointer(address, head+8)
	if err != nil {
		return err
	}
	count, err := w.r.pointer(address, head+16)
	if err != nil {
		return err
	}
	if w.r.layout.minor >= 14 && owner != 0 {
		count++ // it counts from 0
	}
	fmt.Fprintf(w, "<%s %s object owner=%d count=%d at %#x>", lockedWord(count > 0), c.name, owner, count, address)
	return nil
}

func lockedWord(isLocked bool) string {
	if isLocked {
		return "locked"
	}
	return "unlocked"
}
