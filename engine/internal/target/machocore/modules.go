// SPDX-License-Identifier: Apache-2.0

package machocore

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// addModules makes modules of the images and finds their files: by UUID, or, without one, by path.
func (c *Core) addModules() {
	isExeUsed := c.finder.Exe == ""
	for _, im := range c.images {
		isExe := c.isExecutable(im)
		isExeUsed = isExeUsed || isExe
		c.modules = append(c.modules, c.newModule(im, isExe))
	}
	if !isExeUsed {
		c.problem("%s was not used: no image of the core is known to be the executable", c.finder.Exe)
	}
	target.SortModules(c.modules)
	c.files = target.NewFileBytes(c.modules)
}

func (c *Core) newModule(im *image, isExe bool) *target.Module {
	m := &target.Module{Module: trace.Module{
		Path: im.path, BuildID: im.uuid, Symbols: symbolID(im), Base: im.address, Arch: c.arch(), IsMachO: true,
	}}
	if im.file != nil && im.file.Text() != nil {
		m.Size = im.file.Text().MemSize
	}
	found := c.finder.FindCode(im.path, im.uuid, "", "", isExe)
	m.Object, m.File, m.Problem, m.Tried = found.Object, found.File(), found.Problem, found.Tried
	if m.Object != nil {
		if reason := c.otherCode(m.Object); reason != "" {
			m.Problem = fmt.Sprintf("%s was not used: %s", found.Path, reason)
			m.Tried = append(found.Tried, object.Attempt{Path: found.Path, Reason: reason, Kind: object.Mismatched})
			_ = m.Object.Close()
			m.Object, m.File = nil, ""
		}
	}
	if m.Object == nil || m.Object.DebugOnly() {
		if o := c.assemble(im); o != nil {
			if m.Object != nil {
				_ = m.Object.Close()
			}
			m.Object, m.File, m.Problem = o, "", ""
		}
	} else if o := c.decrypted(im, m.Object); o != nil {
		_ = m.Object.Close()
		m.Object = o
	}
	m.Segments = c.segments(im, m.Object)
	return m
}

// symbolID returns the IDs of an image in stores of symbol files.
func symbolID(im *image) trace.SymbolID {
	if im.uuid == nil {
		return trace.SymbolID{}
	}
	id := strings.ToUpper(fmt.Sprintf("%x", im.uuid))
	return trace.SymbolID{DebugFile: object.LastPart(im.path), DebugID: id + "0", CodeID: id}
}

// arch returns the name of the processor.
func (c *Core) arch() string {
	if m := c.machine(); m != nil {
		return m.arch
	}
	return c.file.MachineName()
}

// otherCode returns the reason why a file cannot be the loaded one; "" where it can.
func (c *Core) otherCode(o *object.Object) string {
	switch m := c.machine(); {
	case !o.IsMachO():
		return "it is no Mach-O file"
	case m != nil && o.Machine() != uint16(m.elf):
		return fmt.Sprintf("it is for %s, the core is of %s", object.DescribeMachine(o.Machine()), m.arch)
	case len(o.Segments()) == 0:
		return "it has nothing that is loaded"
	}
	return ""
}

// segments returns where the segments of an image are in memory.
func (c *Core) segments(im *image, o *object.Object) (list []trace.Segment) {
	f := im.file
	if o != nil && o.IsMachO() {
		f = o.MachO()
	}
	if f == nil || f.Text() == nil {
		return nil
	}
	for _, s := range f.Segments() {
		if s.MemSize == 0 || !s.IsMapped() {
			continue
		}
		if start := im.startOf(s, f.Text().Address); start+s.MemSize > start {
			list = append(list, trace.Segment{Address: s.Address, Size: s.MemSize, Start: start, Executable: s.Protection&macho.CanExecute != 0})
		}
	}
	return list
}

// Bounds on the bytes of images that are assembled from memory, of one and of all.
const (
	maxImage  = 256 << 20
	maxImages = 1 << 30
)

// assemble makes an object of an image in memory, as its file would be; nil where the core lacks its code, or
// it is too large. An image of the shared cache has the code alone: the cache's symbols are not at hand.
func (c *Core) assemble(im *image) *object.Object {
	text := textOf(im)
	if text == nil {
		return nil
	}
	slide, _ := im.slide()
	header := bytes.Clone(im.header)
	macho.PutPlain(header)
	var b []byte
	if hasCode := len(c.memory.read(text.Address+slide, min(text.MemSize, headerSize+1))) > headerSize; !hasCode {
		return nil
	}
	if im.file.IsFromCache() {
		if b = c.gather(b, text, 0, slide); b == nil {
			return nil
		}
		onlyText(header)
	} else {
		hasLinkEdit := false
		for _, s := range im.file.Segments() {
			if with := c.gather(b, s, s.Offset, slide); with != nil {
				b = with
				hasLinkEdit = hasLinkEdit || s.Name == "__LINKEDIT"
			}
		}
		if !hasLinkEdit {
			withoutLinkEdit(header)
		}
	}
	if len(b) < len(header) {
		return nil
	}
	copy(b, header)
	o, err := c.finder.Store.Image(cmp.Or(im.path, fmt.Sprintf("image at %#x", im.address)), b, nil)
	if err != nil {
		return nil
	}
	if c.otherCode(o) != "" {
		_ = o.Close()
		return nil
	}
	return o
}

// decrypted makes an object of a file of which a part is encrypted: memory has that part as the system decrypted it. It is
// nil where nothing is encrypted, and where the core lacks some of the part.
func (c *Core) decrypted(im *image, file *object.Object) *object.Object {
	f := file.MachO()
	start, size := f.Encrypted()
	n := uint64(len(file.Data()))
	if size == 0 || f.Text() == nil || start+size > n || n > min(maxImage, c.imageBudget) {
		return nil
	}
	c.imageBudget -= n
	b := bytes.Clone(file.Data())
	left := size
	for _, s := range f.Segments() {
		from, to := max(start, s.Offset), min(start+size, s.Offset+min(s.FileSize, s.MemSize, n))
		if from >= to {
			continue
		}
		part := c.memory.read(im.startOf(s, f.Text().Address)+(from-s.Offset), to-from)
		if uint64(len(part)) < to-from {
			return nil
		}
		copy(b[from:], part)
		left -= min(left, to-from)
	}
	if left > 0 {
		return nil
	}
	macho.PutPlain(b)
	o, err := c.finder.Store.Image(file.Name(), b, nil)
	if err != nil {
		return nil
	}
	return o
}

// textOf returns the segment that an image begins with; nil where its header is not known or is elsewhere.
func textOf(im *image) *macho.Segment {
	if im.file == nil {
		return nil
	}
	text := im.file.Text()
	if text == nil || text.Offset != 0 && !im.file.IsFromCache() {
		return nil
	}
	return text
}

// gather returns a file with the bytes of a segment at their offset; nil where the core has none of them, or
// they are too many.
func (c *Core) gather(b []byte, s *macho.Segment, offset, slide uint64) []byte {
	n := min(s.FileSize, s.MemSize)
	bytes := c.memory.read(s.Address+slide, min(n, maxImage))
	end := offset + n
	if len(bytes) == 0 || end < offset || end > maxImage {
		return nil
	}
	if grown := end - min(end, uint64(len(b))); grown > c.imageBudget {
		return nil
	} else if grown > 0 {
		c.imageBudget -= grown
		b = append(b, make([]byte, grown)...)
	}
	copy(b[offset:end], bytes)
	return b
}

// Members of segment_command_64 and section_64, and load commands with offsets in __LINKEDIT.
const (
	segmentKind   = 0x19
	segmentSize   = 72
	sectionSize   = 80
	segmentOffset = 40
	segmentBytes  = 48
)

var linkEditKinds = map[uint32]bool{
	0x2: true, 0xb: true, 0x1d: true, 0x1e: true, 0x22: true, 0x26: true, 0x29: true, 0x2b: true, 0x2e: true,
	0x80000022: true, 0x80000033: true, 0x80000034: true,
}

// eachCommand yields the load commands of a header that was read already.
func eachCommand(header []byte, yield func(command []byte)) {
	for b := header[headerSize:]; len(b) >= 8; {
		size := uint64(le.Uint32(b[4:]))
		if size < 8 || size > uint64(len(b)) {
			return
		}
		yield(b[:size])
		b = b[size:]
	}
}

// withoutLinkEdit changes a header: nothing is said of __LINKEDIT, which is not at hand.
func withoutLinkEdit(header []byte) {
	eachCommand(header, func(b []byte) {
		if linkEditKinds[le.Uint32(b)] {
			le.PutUint32(b, 0)
		}
	})
}

// onlyText changes a header to one whose file has __TEXT alone, from its beginning on.
func onlyText(header []byte) {
	withoutLinkEdit(header)
	eachCommand(header, func(b []byte) {
		if le.Uint32(b) != segmentKind || len(b) < segmentSize {
			return
		}
		address := le.Uint64(b[24:])
		isText := macho.Name(b[8:24]) == textSegment
		le.PutUint64(b[segmentOffset:], 0)
		if !isText {
			le.PutUint64(b[segmentBytes:], 0)
		}
		for s := b[segmentSize:]; len(s) >= sectionSize; s = s[sectionSize:] {
			offset := uint32(0)
			if isText {
				offset = uint32(le.Uint64(s[32:]) - address) //nolint:gosec // checked where it is read
			}
			le.PutUint32(s[48:], offset)
		}
	})
}
