// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/profilenames"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/object"
)

// cubinOf returns the number of the cubin that a mapping is of; see object.CubinID.
func cubinOf(m *profilenames.Mapping) (uint64, bool) {
	return stacktree.CubinOf(m.File, m.GNU, m.Hash)
}

// isDevice reports whether a mapping is of code inside of another file.
func isDevice(m *profilenames.Mapping) bool {
	_, isPart := partOf(m)
	return isPart || isCubin(m)
}

// A part is a code object inside of a file, as ROCm names it: file://PATH#offset=N&size=N.
type part struct {
	path         string
	offset, size uint64
}

// partOf returns the part of a file that a mapping is of. A mapping with a build ID of its own is looked for
// by that.
func partOf(m *profilenames.Mapping) (p part, ok bool) {
	u, err := url.Parse(m.File)
	if err != nil || u.Scheme != "file" || u.Path == "" || !m.HasNoID() {
		return p, false
	}
	query, err := url.ParseQuery(u.Fragment)
	if err != nil {
		return p, false
	}
	p.path = u.Path
	if p.offset, err = strconv.ParseUint(query.Get("offset"), 10, 64); err == nil {
		p.size, err = strconv.ParseUint(query.Get("size"), 10, 64)
	}
	return p, err == nil
}

// key is the part's and its file's: other files may have the path in other profiles.
func (p part) key(n *profileNamer, m *profilenames.Mapping) fileKey {
	key := fileKey{name: m.File}
	if host := n.byPath[p.path]; host != nil {
		key.host = string(host.Object.BuildID())
	}
	return key
}

// openPart opens a part of the file of another mapping, whose build ID tells that it is the right one, or of
// a file that the user named.
func (f *profileFile) openPart(n *profileNamer, m *profilenames.Mapping, p part) {
	var whole []byte
	if host := n.byPath[p.path]; host != nil {
		whole = host.file.Data()
	} else if path := cmp.Or(n.finder.Provided[p.path], n.finder.Provided[object.LastPart(p.path)]); path != "" {
		file, err := object.Map(path)
		if err != nil {
			f.problem = err.Error()
			return
		}
		defer file.Close()
		whole = file.Data()
	} else {
		f.problem = "neither it nor the file that it is in has a build ID in the profile"
		return
	}
	if p.offset > uint64(len(whole)) || p.size > uint64(len(whole))-p.offset {
		f.problem = fmt.Sprintf("%d bytes at offset %d are more than its file has", p.size, p.offset)
		return
	}
	err := object.Guard(func() error {
		o, err := object.New(m.File, bytes.Clone(whole[p.offset:p.offset+p.size]))
		if err == nil {
			f.File = n.s.newFile(o)
		}
		return err
	})
	if err != nil {
		f.problem = err.Error()
	}
}

func isCubin(m *profilenames.Mapping) bool {
	_, ok := cubinOf(m)
	return ok
}

// openCubin looks for a cubin: the file that the user named for the mapping, and those in the files of objects
// and of the profile's other mappings.
func (f *profileFile) openCubin(n *profileNamer, m *profilenames.Mapping, id uint64) {
	var found []byte
	name := fmt.Sprintf("cubin-%016x", id)
	take := func(o *object.Object) {
		if own, ok := o.CubinID(); !ok || own != id {
			return
		}
		switch data := o.Data(); {
		case found == nil:
			found = bytes.Clone(data)
		case !bytes.Equal(found, data):
			f.problem = "several cubins have its number: it may be any of them"
		}
	}
	err := object.Guard(func() error {
		for o, err := range n.deviceObjects(m) {
			if err != nil {
				return err
			}
			take(o)
		}
		return nil
	})
	switch {
	case err != nil:
		f.problem = err.Error()
	case found == nil:
		f.problem = "no cubin with its number is in a file that is known"
	}
	if f.problem != "" {
		return
	}
	o, err := object.New(name, found)
	if err != nil {
		f.problem = err.Error()
		return
	}
	f.File, f.isCubin = n.s.newFile(o), true
}

// deviceObjects yields the objects that may be the cubin of a mapping. They are valid until the next.
func (n *profileNamer) deviceObjects(m *profilenames.Mapping) iter.Seq2[*object.Object, error] {
	return func(yield func(*object.Object, error) bool) {
		paths := slices.Clone(n.objects)
		for _, name := range []string{m.File, object.LastPart(m.File)} {
			if path := n.finder.Provided[name]; path != "" && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
		for _, path := range paths {
			file, err := object.Map(path)
			if err != nil {
				yield(nil, err)
				return
			}
			isMore := eachObject(path, file.Data(), n.finder.Formats, yield)
			_ = file.Close() // it was only read
			if !isMore {
				return
			}
		}
		for _, host := range n.hosts {
			if !eachNested(host.Object.Nested(n.finder.Formats), yield) {
				return
			}
		}
	}
}

// eachObject yields the object of a file, and those inside of it.
func eachObject(path string, data []byte, formats object.Formats, yield func(*object.Object, error) bool) (isMore bool) {
	if nested, isFile := object.NestedIn(path, data, formats); isFile {
		return eachNested(nested, yield)
	}
	o, err := object.NewWith(path, data, formats)
	if err != nil {
		return yield(nil, err)
	}
	defer o.Close()
	return yield(o, nil) && eachNested(o.Nested(formats), yield)
}

// eachNested yields the code objects of a list. Those that cannot be read are left out.
func eachNested(list iter.Seq2[object.Nested, error], yield func(*object.Object, error) bool) (isMore bool) {
	for inner, err := range list {
		if err != nil || len(inner.Data) == 0 || inner.Image != "" {
			continue
		}
		o, err := object.New(inner.Name, inner.Data)
		if err != nil {
			continue
		}
		isMore := yield(o, nil)
		_ = o.Close() // it is in memory
		if !isMore {
			return false
		}
	}
	return true
}

// kernelOffset returns the address in a cubin of a frame whose address counts from the beginning of its kernel.
func (f *profileFile) kernelOffset(system string, frame *profilenames.Frame) (uint64, string) {
	if system == "" {
		return 0, "they do not name their kernel, from which addresses in a cubin count"
	}
	start, size, ok := f.begin(system)
	switch {
	case !ok:
		return 0, fmt.Sprintf("the cubin has no function %.100q", system)
	case frame.Address >= max(size, 1):
		return 0, fmt.Sprintf("offset %#x of function %.100q, which has the size %#x", frame.Address, system, size)
	}
	return start + frame.Address, ""
}
