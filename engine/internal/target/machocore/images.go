// SPDX-License-Identifier: Apache-2.0

package machocore

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/macho"
)

// image is a Mach-O file in the memory of the process.
type image struct {
	path    string
	address uint64 // of its header
	uuid    []byte
	header  []byte      // its header and load commands, as the core has them in memory
	file    *macho.File // those, read; nil: the core lacks them
	placed  []placed    // where its segments are, as the writer of the core tells
}

// placed is a segment in memory.
type placed struct {
	name  string
	start uint64
}

// Bounds on the images of a core.
const (
	maxImagesOfCore = 1 << 14
	maxSegments     = 64
	maxHeader       = 1 << 20   // bytes of one header and its load commands
	maxAllHeaders   = 256 << 20 // of all of them
	headerSize      = 32
	pageSize        = 4096    // the smallest distance of images in the shared cache
	maxPages        = 1 << 20 // that are searched for dyld
)

// findImages finds the images: the ones in notes, else in the list of dyld, else the ones whose headers are at the
// beginning of a range of memory.
func (c *Core) findImages() {
	for _, im := range c.notes.images {
		c.readHeader(im)
		c.addImage(im)
	}
	if !c.notes.hasImages {
		c.addFromDyld()
	}
	if len(c.images) == 0 {
		c.addFromRanges()
	}
	if len(c.images) == 0 {
		c.problem("no image is known: the core has neither a list of them nor a header of one in memory")
	}
	slices.SortStableFunc(c.images, func(a, b *image) int { return cmp.Compare(a.address, b.address) })
	c.images = slices.CompactFunc(c.images, sameImage)
}

// sameImage reports whether two images are at one address; then a takes what only b has.
func sameImage(a, b *image) bool {
	if a.address != b.address {
		return false
	}
	a.path = cmp.Or(a.path, b.path)
	if a.uuid == nil {
		a.uuid = b.uuid
	}
	if a.placed == nil {
		a.placed = b.placed
	}
	return true
}

// addImage adds an image. An object file's companion or a core is none.
func (c *Core) addImage(im *image) {
	if len(c.images) < 2*maxImagesOfCore {
		c.images = append(c.images, im)
	}
}

// isLoadable reports whether files of a type are loaded into processes.
func isLoadable(typ uint32) bool {
	switch typ {
	case macho.TypeExecute, macho.TypeDylib, macho.TypeDylinker, macho.TypeBundle, macho.TypePreload, macho.TypeKext, macho.TypeFileset:
		return true
	}
	return false
}

// readHeader reads the header of an image in memory, where the core has it. Another UUID there is that of
// another file: the header is not used then.
func (c *Core) readHeader(im *image) {
	head := c.memory.read(im.address, headerSize)
	if len(head) < headerSize || !macho.IsMachO(head) {
		return
	}
	size := headerSize + uint64(le.Uint32(head[20:]))
	if size > maxHeader || size > c.headerBudget {
		c.problem("image at address %#x: a header of %d bytes is not read", im.address, size)
		return
	}
	c.headerBudget -= size
	b := c.memory.read(im.address, size)
	f, err := macho.New(c.path+": image "+cmp.Or(im.path, "without a name"), b)
	if err != nil || !isLoadable(f.Type()) || f.Machine() != c.file.Machine() {
		return
	}
	if id := f.UUID(); im.uuid != nil && id != nil && !slices.Equal(im.uuid, id) {
		c.problem("image at address %#x: its UUID is %x in memory, and %x in the list of images", im.address, id, im.uuid)
		return
	}
	im.header, im.file = b, f
	if im.uuid == nil {
		im.uuid = slices.Clone(f.UUID())
	}
	im.path = cmp.Or(im.path, f.ID())
}

// headers yields the images whose headers are at the beginning of a range of memory.
func (c *Core) headers(yield func(*image) bool) {
	for i := range c.memory {
		p := &c.memory[i]
		if len(p.data) < headerSize || !macho.IsMachO(p.data) || !isLoadable(le.Uint32(p.data[12:])) {
			continue
		}
		im := &image{address: p.start}
		if c.readHeader(im); im.file != nil && !yield(im) {
			return
		}
	}
}

func (c *Core) addFromRanges() {
	for im := range c.headers {
		c.addImage(im)
		if len(c.images) == maxImagesOfCore {
			return
		}
	}
}

// Members of dyld_all_image_infos and dyld_image_info (mach-o/dyld_images.h).
const (
	dyldSection  = "__all_image_info"
	dyldSymbol   = "_dyld_all_image_infos"
	dyldPath     = "/usr/lib/dyld"
	infosSize    = 40
	infosCountAt = 4
	infosListAt  = 8
	infosDyldAt  = 32
	dyldEntry    = 24
)

// addFromDyld adds the images of the list that dyld keeps for debuggers. dyld is found by its header.
func (c *Core) addFromDyld() {
	dyld := c.findDyld()
	if dyld == nil {
		return
	}
	dyld.path = cmp.Or(dyld.path, dyldPath)
	c.addImage(dyld)
	if address, ok := c.infosOf(dyld); ok {
		c.addInfos(address)
	} else {
		c.problem("dyld at address %#x: its list of images is not found", dyld.address)
	}
}

// findDyld returns dyld, whose header is at the beginning of a range of memory, or, in the shared cache, of any page
// of code; nil where the core lacks it.
func (c *Core) findDyld() *image {
	for im := range c.headers {
		if im.file.Type() == macho.TypeDylinker {
			return im
		}
	}
	defer c.ReleasePages()
	pages := maxPages
	for i := range c.memory {
		p := &c.memory[i]
		if p.protection&macho.CanExecute == 0 {
			continue
		}
		for at := pageSize; at+headerSize <= len(p.data) && pages > 0; at += pageSize {
			pages--
			if head := p.data[at:]; !macho.IsMachO(head) || le.Uint32(head[12:]) != macho.TypeDylinker {
				continue
			}
			im := &image{address: p.start + uint64(at)} //nolint:gosec // not negative
			if c.readHeader(im); im.file != nil {
				return im
			}
		}
	}
	return nil
}

// infosOf returns the address of dyld's list: its section, or its symbol.
func (c *Core) infosOf(dyld *image) (address uint64, ok bool) {
	slide, ok := dyld.slide()
	if !ok {
		return 0, false
	}
	for _, s := range dyld.file.Sections() {
		if s.Name == dyldSection {
			return s.Address + slide, true
		}
	}
	o := c.assemble(dyld)
	if o == nil {
		return 0, false
	}
	defer o.Close()
	ok = false
	_ = o.MachO().Symbols(func(s *macho.Symbol) {
		if s.Name == dyldSymbol && s.IsDefined() {
			address, ok = s.Value+slide, true
		}
	})
	return address, ok
}

// addInfos adds the images of dyld's list.
func (c *Core) addInfos(address uint64) {
	b := c.memory.read(address, infosSize)
	if len(b) < infosSize {
		c.problem("dyld's list of images at address %#x is not in the core", address)
		return
	}
	count, list := uint64(le.Uint32(b[infosCountAt:])), le.Uint64(b[infosListAt:])
	if count > maxImagesOfCore {
		c.problem("dyld's list at address %#x has %d images, %d are read", address, count, maxImagesOfCore)
		count = maxImagesOfCore
	}
	entries := c.memory.read(list, count*dyldEntry)
	if uint64(len(entries)) < count*dyldEntry {
		c.problem("dyld's list of %d images at address %#x is not whole in the core", count, list)
	}
	for ; len(entries) >= dyldEntry; entries = entries[dyldEntry:] {
		im := &image{address: le.Uint64(entries), path: c.memory.text(le.Uint64(entries[8:]))}
		c.readHeader(im)
		c.addImage(im)
	}
	if dyld := le.Uint64(b[infosDyldAt:]); dyld != 0 {
		im := &image{address: dyld, path: dyldPath}
		c.readHeader(im)
		c.addImage(im)
	}
}

// slide returns how far an image was moved from its addresses in the file; ok is false where its header is
// not known.
func (im *image) slide() (slide uint64, ok bool) {
	if im.file == nil || im.file.Text() == nil {
		return 0, false
	}
	return im.address - im.file.Text().Address, true
}

// startOf returns where a segment of the image is in memory, which the file has at an address.
func (im *image) startOf(s *macho.Segment, text uint64) uint64 {
	if im.file != nil {
		if slide, ok := im.slide(); ok {
			for _, own := range im.file.Segments() {
				if own.Name == s.Name {
					return own.Address + slide
				}
			}
		}
	}
	for _, p := range im.placed {
		if p.name == s.Name {
			return p.start
		}
	}
	return s.Address + im.address - text
}
