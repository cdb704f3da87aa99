// SPDX-License-Identifier: Apache-2.0

package machocore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/macho"
)

// This file reads the notes of a core (LC_NOTE) that lldb and the kernel write.

// notes has what the notes of a core tell.
type notes struct {
	bits      uint32   // of an address of the lower half of the address space, where processes are; 0: not known
	highBits  uint32   // of one of the upper half, where the kernel is
	threadIDs []string // of all threads, in their order; nil: not known
	images    []*image
	hasImages bool   // there is a list of all images
	main      uint64 // the address of the header of the executable, if hasMain
	hasMain   bool
}

// The kinds of notes that are read, by their owners.
var noteReaders = map[string]func(c *Core, b []byte) error{
	"addrable bits":    (*Core).readBits,
	"process metadata": (*Core).readMetadata,
	"all image infos":  (*Core).readImageInfos,
	"load binary":      (*Core).readLoadBinary,
	"main bin spec":    (*Core).readMainBinary,
}

// readNotes reads the notes. One that is cut or of another version is a problem, and is left out.
func (c *Core) readNotes() {
	for _, n := range c.file.Notes() {
		read := noteReaders[n.Owner]
		if read == nil {
			continue
		}
		b, err := c.fileBytes(n.Offset, n.Size)
		if err == nil {
			err = read(c, b)
		}
		if err != nil {
			c.problem("note %q at offset %#x: %v", n.Owner, n.Offset, err)
		}
	}
}

// fileBytes returns a range of the core.
func (c *Core) fileBytes(offset, size uint64) ([]byte, error) {
	if have := uint64(len(c.data)); offset > have || size > have-offset {
		return nil, fmt.Errorf("%d bytes at offset %#x are not in the file of %d bytes", size, offset, have)
	}
	return c.data[offset : offset+size], nil
}

// need returns an error where a record is shorter than n bytes.
func need(b []byte, n int) error {
	if len(b) < n {
		return fmt.Errorf("%d bytes, expected at least %d", len(b), n)
	}
	return nil
}

// Numbers of "addrable bits".
const (
	leastBits = 32
	mostBits  = 64
)

// readBits reads a version, and how many bits of an address are not a signature's: a number, from version 4 on one
// for each half of the address space; a half without a number has that of the other.
func (c *Core) readBits(b []byte) error {
	if err := need(b, 12); err != nil {
		return err
	}
	version, low := le.Uint32(b), le.Uint32(b[4:])
	high := low
	switch version {
	case 3:
	case 4:
		high = cmp.Or(le.Uint32(b[8:]), low)
		low = cmp.Or(low, high)
	default:
		return fmt.Errorf("version %d, expected 3 or 4", version)
	}
	for _, bits := range []uint32{low, high} {
		if bits != 0 && (bits < leastBits || bits > mostBits) {
			return fmt.Errorf("addresses of %d bits, expected %d to %d", bits, leastBits, mostBits)
		}
	}
	c.notes.bits, c.notes.highBits = low, high
	return nil
}

// maxMetadata bounds the JSON of a core.
const maxMetadata = 8 << 20

// readMetadata reads the JSON of the process: the IDs of its threads, which count if there is one for each.
func (c *Core) readMetadata(b []byte) error {
	if len(b) > maxMetadata {
		return fmt.Errorf("%d bytes, expected at most %d", len(b), maxMetadata)
	}
	var process struct {
		Threads []struct {
			ID *uint64 `json:"thread_id"`
		} `json:"threads"`
	}
	if err := json.Unmarshal(bytes.TrimRight(b, "\x00"), &process); err != nil {
		return err
	}
	if want := len(c.file.Threads()); len(process.Threads) != want {
		return fmt.Errorf("IDs of %d threads, the core has %d", len(process.Threads), want)
	}
	ids := make([]string, 0, len(process.Threads))
	for i, t := range process.Threads {
		if t.ID == nil {
			return fmt.Errorf("thread %d has no ID", i)
		}
		ids = append(ids, strconv.FormatUint(*t.ID, 10))
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		return fmt.Errorf("two of %d threads have the same ID", len(ids))
	}
	for i, t := range process.Threads {
		ids[i] = strconv.FormatUint(*t.ID, 10)
	}
	c.notes.threadIDs = ids
	return nil
}

// Sizes of the records of "all image infos".
const (
	infosHeader = 24
	infoSize    = 48
	vmaddrSize  = 32
	uuidSize    = 16
	unknown     = ^uint64(0) // an address or an offset that the writer did not know
)

// readImageInfos reads the list of all images: a header, entries, and where each has its segments and its
// path.
func (c *Core) readImageInfos(b []byte) error {
	if err := need(b, infosHeader); err != nil {
		return err
	}
	version, count, offset, size := le.Uint32(b), uint64(le.Uint32(b[4:])), le.Uint64(b[8:]), uint64(le.Uint32(b[16:]))
	switch {
	case version != 1:
		return fmt.Errorf("version %d, expected 1", version)
	case size < infoSize && count > 0:
		return fmt.Errorf("entries of %d bytes, expected at least %d", size, infoSize)
	}
	have := uint64(len(c.data))
	if room := (have - min(offset, have)) / max(size, 1); count > room {
		c.problem("note %q: %d images, room for %d at offset %#x", "all image infos", count, room, offset)
		count = room
	}
	c.notes.hasImages = count > 0
	for i := range count {
		if len(c.notes.images) == maxImagesOfCore {
			return fmt.Errorf("more than %d images: the others are not read", maxImagesOfCore)
		}
		c.addImageInfo(c.data[offset+i*size:][:infoSize])
	}
	return nil
}

// addImageInfo adds the image of an entry: the offset of its path, its UUID, its address, the offset and the
// number of its segments.
func (c *Core) addImageInfo(b []byte) {
	im := &image{address: le.Uint64(b[24:]), uuid: uuidOf(b[8:24])}
	if offset := le.Uint64(b); offset < uint64(len(c.data)) {
		im.path = cString(c.data[offset:min(offset+maxPath, uint64(len(c.data)))])
	}
	count := min(uint64(le.Uint32(b[40:])), maxSegments)
	if list, err := c.fileBytes(le.Uint64(b[32:]), count*vmaddrSize); err == nil {
		for ; len(list) > 0; list = list[vmaddrSize:] {
			im.placed = append(im.placed, placed{name: macho.Name(list[:16]), start: le.Uint64(list[16:])})
		}
	}
	if im.address == unknown {
		for _, s := range im.placed {
			if s.name == textSegment {
				im.address = s.start
			}
		}
	}
	if im.address != unknown {
		c.notes.images = append(c.notes.images, im)
	}
}

// uuidOf returns a UUID; nil where all its bytes are zero.
func uuidOf(b []byte) []byte {
	if bytes.Equal(b, make([]byte, len(b))) {
		return nil
	}
	return slices.Clone(b)
}

// readLoadBinary reads one image: a version, a UUID, the address of its header, how far it was moved, and its
// path.
func (c *Core) readLoadBinary(b []byte) error {
	if err := need(b, 36); err != nil {
		return err
	}
	if version := le.Uint32(b); version != 1 {
		return fmt.Errorf("version %d, expected 1", version)
	}
	im := &image{uuid: uuidOf(b[4:20]), address: le.Uint64(b[20:]), path: macho.Name(b[36:min(len(b), 36+maxPath)])}
	if im.address != unknown && len(c.notes.images) < maxImagesOfCore {
		c.notes.images = append(c.notes.images, im)
	}
	return nil
}

// readMainBinary reads the executable, or the kernel: a version, a type, the address of its header, from
// version 2 on how far it was moved, and its UUID.
func (c *Core) readMainBinary(b []byte) error {
	if err := need(b, 32); err != nil {
		return err
	}
	version, uuid := le.Uint32(b), b[16:32]
	switch {
	case version == 2:
		if err := need(b, 40); err != nil {
			return err
		}
		uuid = b[24:40]
	case version != 1:
		return fmt.Errorf("version %d, expected 1 or 2", version)
	}
	if address := le.Uint64(b[8:]); address != unknown {
		c.notes.main, c.notes.hasMain = address, true
		c.notes.images = append(c.notes.images, &image{uuid: uuidOf(uuid), address: address})
	}
	return nil
}

// textSegment is the name of the segment that begins with the header.
const textSegment = "__TEXT"

// isExecutable reports whether an image is the program itself.
func (c *Core) isExecutable(im *image) bool {
	return im.file != nil && im.file.Type() == macho.TypeExecute || c.notes.hasMain && im.address == c.notes.main
}
