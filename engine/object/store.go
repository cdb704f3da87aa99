// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"sync"
	"time"
)

// A Store has code objects that are open. All who open the same one get the same Object, which is
// closed when each has closed it. It may be used concurrently. A nil Store shares nothing: each
// call opens an object of its own.
//
// Files are the same if path, device, inode, size, mtime and ctime are. Their bytes are not
// compared, and no build ID is believed, which is a file's own claim. So a file that was replaced,
// written to or only touched is another object; users of the old one keep that. A file with two
// paths is two objects, since messages, and the search for files beside it, use the path. A code
// object inside a file is the same if the file and the name are.
//
// Comparing bytes would not recognise a changed file: a mapping has the pages of its file, so that
// new bytes would be compared with themselves, while tables made of the old bytes stay.
//
// Images, which are in no file, are the same if name and bytes are.
//
// All users of a Store use the same Formats, or nil.
type Store struct {
	mu     sync.Mutex
	files  map[fileKey]*Object
	images map[imageKey]*Object
	others map[fileKey]error     // files that are no code objects, and why
	ids    map[identity][]string // build IDs of files in folders
	seed   maphash.Seed
}

// maxIDs bounds the files in folders whose build IDs are known.
const maxIDs = 1 << 14

// maxOthers bounds the files that are known to be no code objects. Processes have
// files of data mapped, and a core may not tell them from code.
const maxOthers = 1 << 12

// NewStore makes an empty Store.
func NewStore() *Store {
	return &Store{files: map[fileKey]*Object{}, images: map[imageKey]*Object{}, others: map[fileKey]error{}, ids: map[identity][]string{}, seed: maphash.MakeSeed()}
}

// unshared opens each object anew.
var unshared *Store

// A fileKey identifies the object of a file, or of an entry in it.
type fileKey struct {
	identity
	path    string
	entry   string
	formats bool // there are Formats, by which the entry was found or the file is none
}

// An imageKey is the place of an image in images: others may have the same key.
type imageKey struct {
	name string
	size int
	hash uint64
}

// maxSharedImage bounds the images that are copied to be shared.
const maxSharedImage = 1 << 20 // bytes

// Open opens the code object that a file is: an ELF file, or one of the formats. Of a
// file that is open already it takes one system call.
func (s *Store) Open(path string, formats Formats) (*Object, error) {
	return s.open(hostPlace(path), formats)
}

// OpenNested is the function OpenNested by the Store: it opens an ELF file, or a code object inside a
// file, FILE#NAME.
func (s *Store) OpenNested(path string, formats Formats) (*Object, error) {
	path, err := InDSYM(path)
	if err != nil {
		return nil, err
	}
	o, err := s.open(hostPlace(path), nil)
	file, name, nested := cutNested(path)
	switch {
	case err == nil:
		return o, nil
	case errors.Is(err, ErrNotELF):
		return OpenNested(path, formats) // whose error describes the file
	case !nested || !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return s.open(place{file: file, entry: name}, formats)
}

// openCode opens a code object, which a core is not.
func (s *Store) openCode(p place, formats Formats) (*Object, error) {
	o, err := s.open(p, formats)
	if err == nil && o.Type() == elf.ET_CORE {
		_ = o.Close()
		return nil, errors.New("is a core file")
	}
	return o, err
}

// open opens the object at a place.
func (s *Store) open(p place, formats Formats) (*Object, error) {
	if s != nil {
		// The file is identified as it would be opened: no link leads to the
		// object of another file.
		id, err := p.identify()
		if err != nil {
			return nil, err
		}
		o, err := s.file(p.key(id, formats))
		if err != nil {
			return nil, err
		}
		if o != nil {
			return o.withFormats(formats)
		}
	}
	m, err := p.mapFile()
	if err != nil {
		return nil, err
	}
	if s != nil {
		time.Sleep(m.id.unsettled(time.Now()))
	}
	id := m.id
	o, err := p.object(m, formats)
	switch {
	case s == nil:
		return o, err
	case err != nil:
		if errors.Is(err, ErrNotELF) {
			s.addOther(p.key(id, formats), err)
		}
		return nil, err
	}
	return s.addFile(p.key(id, formats), o), nil
}

func (p *place) key(id identity, formats Formats) fileKey {
	return fileKey{id, cmp.Or(p.displayed, p.file), p.entry, formats != nil}
}

// file finds an open object, and adds a use of it. The error is why the file is no
// code object; both are nil where the file is not known.
func (s *Store) file(key fileKey) (*Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.files[key.ofObject()]; o != nil && o.retain() {
		return o, nil
	}
	return nil, s.others[key]
}

// ofObject returns the key of a whole file: an ELF file is the same object whatever the formats.
func (k fileKey) ofObject() fileKey {
	k.formats = k.formats && k.entry != ""
	return k
}

// addOther adds a file that is no code object.
func (s *Store) addOther(key fileKey, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.others) >= maxOthers {
		clear(s.others)
	}
	s.others[key] = err
}

// addFile adds an object that was opened. Where another goroutine has opened the same one meanwhile
// it returns that.
func (s *Store) addFile(key fileKey, o *Object) *Object {
	key = key.ofObject()
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.files[key]; first != nil && first.retain() {
		_ = o.Close() // no other has it
		return first
	}
	keep(s, s.files, key, o)
	return o
}

// keep adds an object to one of the store's maps, until its last Close. The caller holds mu.
func keep[K comparable](s *Store, objects map[K]*Object, key K, o *Object) {
	o.forget = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if objects[key] == o {
			delete(objects, key)
		}
	}
	objects[key] = o
}

// withFormats returns an object to a user of some formats, and closes it where it has none of them.
func (o *Object) withFormats(formats Formats) (*Object, error) {
	if !o.foreign {
		return o, nil
	}
	is, err := recognised(o.data, formats)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", o.name, err)
	case !is:
		err = fmt.Errorf("%s: %w", o.name, ErrNotELF)
	default:
		return o, nil
	}
	_ = o.Close()
	return nil, err
}

// tick is how far apart two changes of a file may be and have the same time: kernels
// take it from a clock that goes on at the timer's interrupt, every 10 ms at most.
const tick = 20 * time.Millisecond

// unsettled is how long to wait before a file is read, so that every later change
// gives it another time.
func (id *identity) unsettled(now time.Time) time.Duration {
	wait := time.Unix(0, id.ctime).Add(tick).Sub(now)
	if wait < 0 || wait > tick { // it is old, or another machine's clock is ahead
		return 0
	}
	return wait
}

// buildIDs are the identities of the code object at a place, which is not kept open; none where
// it has none or there is no such file. Every target looks through the same folders.
func (s *Store) buildIDs(p place) []string {
	var id identity
	if s != nil {
		var err error
		if id, err = p.identify(); err != nil {
			return nil
		}
		s.mu.Lock()
		known, ok := s.ids[id]
		s.mu.Unlock()
		if ok {
			return known
		}
	}
	var list []string
	o, err := unshared.openCode(p, nil) // other formats have no build IDs
	if err == nil {
		for _, own := range o.buildIDs() {
			list = append(list, string(own))
		}
		id = o.mapping.id
		_ = o.Close()
	}
	for _, one := range p.slices(err) {
		list = append(list, unshared.buildIDs(one)...)
	}
	if s == nil || id.unsettled(time.Now()) > 0 {
		return list
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) >= maxIDs {
		clear(s.ids)
	}
	s.ids[id] = list
	return list
}

// Part opens a code object that is a part of a file's bytes: size of them from offset on,
// or all that follow where size is 0. name is the file's name, and uri the part's.
func (s *Store) Part(name, uri string, data []byte, offset, size uint64) (*Object, error) {
	if whole := uint64(len(data)); offset > whole || size > whole-offset {
		return nil, fmt.Errorf("%s was not used: it ends at offset %#x, before the code object of %#x bytes at offset %#x", name, whole, size, offset)
	}
	if data = data[offset:]; size > 0 {
		data = data[:size]
	}
	o, err := s.Image(uri, data, nil)
	if err != nil {
		return nil, fmt.Errorf("%s was not used: %w", name, err)
	}
	return o, nil
}

// Image opens a code object that is in no file, such as the vDSO of a core, by its bytes, which are
// read inside Guard. The name is used in messages, and identifies images: the same bytes under
// another name are another object. A shared object has a copy of the bytes. One of more than 1 MiB
// is the caller's alone and keeps its bytes, as for NewWith.
func (s *Store) Image(name string, data []byte, formats Formats) (*Object, error) {
	if s == nil || len(data) > maxSharedImage {
		return NewWith(name, data, formats)
	}
	if o, err := s.image(name, data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	} else if o != nil {
		return o.withFormats(formats)
	}
	var own []byte
	if err := Guard(func() error { own = bytes.Clone(data); return nil }); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o, err := NewWith(name, own, formats)
	if err != nil {
		return nil, err
	}
	o.keptBytes.Add(int64(len(own)))
	return s.addImage(o), nil
}

// NestedImage opens a code object inside an image: path is FILE#NAME, and the bytes
// are FILE's.
func (s *Store) NestedImage(path string, data []byte, formats Formats) (*Object, error) {
	o, err := NewNestedWith(path, data, formats)
	if s == nil || err != nil {
		return o, err
	}
	return s.Image(path, o.data, formats)
}

// image finds an open image with the same bytes, and adds a use of it.
func (s *Store) image(name string, data []byte) (found *Object, err error) {
	err = Guard(func() error {
		o := s.imageLike(s.imageKey(name, data))
		if o == nil {
			return nil
		}
		same := false
		defer func() {
			if !same { // the comparison may fault
				_ = o.Close()
			}
		}()
		if same = bytes.Equal(o.data, data); same {
			found = o
		}
		return nil
	})
	return found, err
}

func (s *Store) imageKey(name string, data []byte) imageKey {
	return imageKey{name, len(data), maphash.Bytes(s.seed, data)}
}

// imageLike finds an open image that may have the same bytes, and adds a use of it.
func (s *Store) imageLike(key imageKey) *Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.images[key]; o != nil && o.retain() {
		return o
	}
	return nil
}

// addImage adds an image that has its own bytes.
func (s *Store) addImage(o *Object) *Object {
	key := s.imageKey(o.name, o.data)
	s.mu.Lock()
	defer s.mu.Unlock()
	// One with other bytes and the same hash loses its place, and stays open.
	if first := s.images[key]; first != nil && bytes.Equal(first.data, o.data) && first.retain() {
		return first
	}
	keep(s, s.images, key, o)
	return o
}
