// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// sameObject opens a file twice and says whether both are one object. change happens
// between.
func sameObject(t *testing.T, s *Store, path string, change func()) bool {
	t.Helper()
	first, err := s.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	change()
	second, err := s.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if on := read(t, path); !bytes.Equal(second.Data(), on) {
		t.Errorf("%s: the object that was opened last does not have the bytes of the file", path)
	}
	return first == second
}

func textOf(t *testing.T, o *Object) string {
	t.Helper()
	b, err := o.Section(".text").Data()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAFileIsTheSameObjectUntilItChanges(t *testing.T) {
	id := bytes.Repeat([]byte{7}, 20)
	whole, patched := withBuildID(id, "this"), withBuildID(id, "that")
	for _, test := range []struct {
		name   string
		change func(path string)
		same   bool
	}{
		{"nothing happens", func(string) {}, true},
		{"it is read", func(path string) { read(t, path) }, true},
		{"rewritten: the build ID and the size stay", func(path string) { write(t, path, patched) }, false},
		{"rewritten, with its old mtime", func(path string) {
			st, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, patched)
			if err := os.Chtimes(path, st.ModTime(), st.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"replaced by a file with the same build ID", func(path string) {
			write(t, path+".new", patched)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"replaced by a file with the same bytes", func(path string) {
			write(t, path+".new", whole)
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"touched", func(path string) {
			if err := os.Chtimes(path, time.Now(), time.Unix(1e9, 0)); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"replaced by a link to another file", func(path string) {
			write(t, path+".other", patched)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			link(t, path+".other", path)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "program")
			write(t, path, whole)
			if same := sameObject(t, NewStore(), path, func() { test.change(path) }); same != test.same {
				t.Errorf("the same object: %v, expected %v", same, test.same)
			}
		})
	}
}

// A clock's tick is long enough to write a file several times.
func TestAFileThatChangesTwiceInATickIsNotMistaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	s := NewStore()
	for i := range 10 {
		text := fmt.Sprintf("%04d", i)
		write(t, path, withBuildID([]byte{1, 2}, text))
		o, err := s.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if got := textOf(t, o); got != text {
			t.Fatalf("the text is %q, expected %q", got, text)
		}
	}
}

func TestObjectsOfTheSameBytesAtOtherPathsAreOthers(t *testing.T) {
	dir := t.TempDir()
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	write(t, a, withBuildID([]byte{1, 2, 3}, "text"))
	write(t, b, withBuildID([]byte{1, 2, 3}, "text"))
	link(t, a, c)
	s := NewStore()
	for _, path := range []string{a, b, c} {
		o, err := s.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if o.Path() != path || o.Name() != path {
			t.Errorf("%s is %s, at %s", path, o.Name(), o.Path())
		}
	}
	if len(s.files) != 3 {
		t.Errorf("%d objects, expected 3", len(s.files))
	}
}

func TestObjectsStayOpenForTheirOtherUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	write(t, path, withBuildID(nil, "text"))
	s := NewStore()
	open := func() *Object {
		o, err := s.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	isOpen := func(o *Object, want bool) {
		t.Helper()
		o.mapping.mu.Lock()
		defer o.mapping.mu.Unlock()
		if o.mapping.closed == want {
			t.Fatalf("the file is mapped: %v, expected %v", !want, want)
		}
	}
	first := open()
	second := open()
	third := second.Retain()
	if first != second || second != third {
		t.Fatal("three objects, expected one")
	}
	for range 2 {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		isOpen(third, true)
		if textOf(t, third) != "text" {
			t.Error("the text cannot be read after another user's Close")
		}
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	isOpen(third, false)
	if len(s.files) != 0 {
		t.Errorf("%d objects in the store, expected none", len(s.files))
	}
	// One more of what is closed harms nobody who opens it anew.
	again := open()
	defer again.Close()
	if again == third {
		t.Fatal("an object that was closed is given again")
	}
	if err := third.Close(); err != nil {
		t.Error(err)
	}
	isOpen(again, true)
	if third.Retain(); third.uses.Load() != 0 {
		t.Error("an object that was closed has a use")
	}
}

func TestObjectsWithoutAStoreAreClosedByTheLastUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	write(t, path, withBuildID(nil, "text"))
	o := mustOpen(t, path)
	other := mustOpen(t, path)
	if o == other {
		t.Fatal("one object, expected two")
	}
	o.Retain()
	for range 2 {
		if o.mapping.closed {
			t.Error("closed before the last use")
		}
		o.Close()
	}
	if !o.mapping.closed {
		t.Error("still mapped")
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func TestStoresShareCodeObjectsInFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a#b")
	write(t, path, packBundle(testBundle(bundleEntry{name: "host-x86_64"}, bundleEntry{name: "hip-amdgcn--gfx90a", data: withBuildID([]byte{9}, "wave")}), 2, 0))
	s := NewStore()
	open := func(name string) *Object {
		t.Helper()
		o, err := s.OpenNested(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { o.Close() })
		return o
	}
	first, second, byIndex := open(path+"#gfx90a"), open(path+"#gfx90a"), open(path+"#1")
	if first != second || first == byIndex || textOf(t, first) != "wave" || first.Name() != path+"#gfx90a" || first.Path() != path {
		t.Errorf("%s and %s of %s", first.Name(), byIndex.Name(), first.Path())
	}
	_, err := s.OpenNested(path, nil)
	wantError(t, err, ErrNotELF, "name a code object in it")
	_, err = s.OpenNested(path+"#gfx1", nil)
	wantError(t, err, ErrNoNested, "")
	_, err = s.OpenNested(path+".none", nil)
	wantError(t, err, os.ErrNotExist, "")
}

func TestStoresKnowWhatFormatsRecognise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kernel")
	write(t, path, []byte("BOX code"))
	s := NewStore()
	first, err := s.Open(path, boxes{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := s.Open(path, boxes{})
	if err != nil || first != second {
		t.Fatalf("another object; %v", err)
	}
	second.Close()
	for range 3 {
		_, err = s.Open(path, nil)
		wantError(t, err, ErrNotELF, path)
	}
	if n := first.uses.Load(); n != 1 {
		t.Errorf("%d uses, expected 1", n)
	}
}

func TestImagesAreSharedByTheirBytes(t *testing.T) {
	s := NewStore()
	open := func(name string, b []byte) *Object {
		t.Helper()
		o, err := s.Image(name, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	id := []byte{1, 2, 3, 4}
	b := withBuildID(id, "text")
	first := open("[vdso]", b)
	second := open("[vdso]", bytes.Clone(b))
	patched := open("[vdso]", withBuildID(id, "hack"))
	named := open("other", b)
	if first != second || first == patched || first == named || named.Name() != "other" {
		t.Error("images are not told apart by name and bytes alone")
	}
	if first.Path() != "" {
		t.Errorf("the path is %q, expected none", first.Path())
	}
	clear(b) // the target that had it is closed
	if textOf(t, first) != "text" || textOf(t, patched) != "hack" {
		t.Error("a shared image does not have bytes of its own")
	}
	for _, o := range []*Object{first, second, patched, named} {
		o.Close()
	}
	if len(s.images) != 0 {
		t.Errorf("%d images in the store, expected none", len(s.images))
	}
	if _, err := s.Image("bad", []byte("bad"), nil); !errors.Is(err, ErrNotELF) {
		t.Error(err)
	}
	large := withBuildID(id, string(make([]byte, maxSharedImage)))
	alone := open("large", large)
	if alone == open("large", large) || len(s.images) != 0 {
		t.Error("a large image is shared")
	}
}

// Images of the same hash are told apart by their bytes.
func TestImagesOfOneHashAreOthers(t *testing.T) {
	s := NewStore()
	a, err := s.Image("x", withBuildID(nil, "this"), nil)
	if err != nil {
		t.Fatal(err)
	}
	b := withBuildID(nil, "that")
	s.images[s.imageKey("x", b)] = a
	for range 2 {
		o, err := s.Image("x", b, nil)
		if err != nil || o == a || textOf(t, o) != "that" {
			t.Fatalf("the image of other bytes; %v", err)
		}
	}
	if n := a.uses.Load(); n != 1 {
		t.Errorf("%d uses, expected 1", n)
	}
}

func TestImagesInFilesThatShrink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "core")
	b := withBuildID(nil, string(make([]byte, 3*pageSize)))
	write(t, path, b)
	m, err := Map(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := NewStore()
	shared, err := s.Image("image", m.Data(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	if err := os.Truncate(path, int64(pageSize)); err != nil {
		t.Fatal(err)
	}
	_, err = s.Image("image", m.Data(), nil)
	wantError(t, err, ErrFileShrank, "image")
	if n := shared.uses.Load(); n != 1 {
		t.Errorf("%d uses, expected 1", n)
	}
	if !bytes.Equal(shared.Data(), b) {
		t.Error("the shared image lost bytes with the file")
	}
}

func TestFindersShareWhatTheyFind(t *testing.T) {
	root := t.TempDir()
	program, debug := debugFixture(t, true)
	write(t, filepath.Join(root, "bin/program"), program)
	write(t, filepath.Join(root, "bin/.debug/prog.debug"), debug)
	s := NewStore()
	for _, sysroot := range []string{root, ""} {
		name := "/bin/program"
		if sysroot == "" {
			name = filepath.Join(root, name)
		}
		var objects, debugs [2]*Object
		for i := range 2 {
			f := Finder{Sysroot: sysroot, Store: s}
			found := f.Find(name, nil, false)
			if found.Object == nil {
				t.Fatal(found.Problem)
			}
			defer found.Object.Close()
			of := f.FindDebug(found.Object)
			if of.Object == nil {
				t.Fatal(of.Problem)
			}
			defer of.Object.Close()
			objects[i], debugs[i] = found.Object, of.Object
			if f.Exe = found.Path; string(f.ExeID()) != string(objects[0].BuildID()) {
				t.Error("the build ID of Exe is another")
			}
			beside, err := f.OpenBeside(of.Path)
			if err != nil || beside != of.Object {
				t.Errorf("another object beside the first; %v", err)
			}
			beside.Close()
		}
		if objects[0] != objects[1] || debugs[0] != debugs[1] || objects[0] == debugs[0] {
			t.Errorf("sysroot %q: the second target has objects of its own", sysroot)
		}
	}
}

// A folder is looked through once for each target; its files are not opened again.
func TestStoresKnowTheBuildIDsOfFolders(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "renamed")
	write(t, path, withBuildID([]byte{1, 1}, "first"))
	write(t, filepath.Join(dir, "notes.txt"), []byte("no code"))
	time.Sleep(2 * tick)
	s := NewStore()
	find := func(id ...byte) bool {
		f := Finder{Sysroot: t.TempDir(), Folders: []string{dir}, Store: s}
		found := f.Find("/bin/program", id, false)
		if found.Object == nil {
			return false
		}
		defer found.Object.Close()
		return found.Checked && bytes.Equal(found.Object.BuildID(), id)
	}
	for range 2 {
		if !find(1, 1) || find(2, 2) {
			t.Error("the folder's file is not found by its build ID")
		}
	}
	if len(s.ids) != 2 {
		t.Errorf("%d build IDs are known, expected 2", len(s.ids))
	}
	write(t, path, withBuildID([]byte{2, 2}, "other"))
	if find(1, 1) || !find(2, 2) {
		t.Error("a file that was written to is found by its old build ID")
	}
}

// Data that processes have mapped is looked at once.
func TestStoresKnowWhatIsNoCode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	write(t, path, []byte("BOX data"))
	s := NewStore()
	f := Finder{Store: s}
	for range 2 {
		if f.HasCode(path) || f.HasCode(path+".none") {
			t.Error("data is a code object")
		}
		_, err := s.Open(path, nil)
		wantError(t, err, ErrNotELF, path)
	}
	if len(s.others) != 1 {
		t.Errorf("%d files are known to be no code, expected 1", len(s.others))
	}
	if f.Formats = (boxes{}); !f.HasCode(path) {
		t.Error("what the formats recognise is no code object")
	}
	f.Formats = nil
	write(t, path, withBuildID(nil, "text"))
	if !f.HasCode(path) {
		t.Error("a file that was written to is still no code object")
	}
	if len(s.files) != 0 {
		t.Errorf("%d objects are open, expected none", len(s.files))
	}
}

// What is known by a path is not given to one that a link leads elsewhere.
func TestStoresKeepPathsBeneathTheSysroot(t *testing.T) {
	dir := t.TempDir()
	root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	write(t, filepath.Join(outside, "lib.so"), withBuildID([]byte{1}, "outside"))
	write(t, filepath.Join(root, "opt/lib/lib.so"), withBuildID([]byte{2}, "inside"))
	link(t, outside, filepath.Join(root, "lib"))
	s := NewStore()
	// The user opens by this path the file that the link leads to.
	o, err := s.Open(filepath.Join(root, "lib/lib.so"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	f := Finder{Sysroot: root, Store: s}
	if found := f.Find("/lib/lib.so", nil, false); found.Object != nil {
		t.Errorf("a file outside the sysroot is given: %s", textOf(t, found.Object))
	}
	if err := os.Remove(filepath.Join(root, "lib")); err != nil {
		t.Fatal(err)
	}
	link(t, "opt/lib", filepath.Join(root, "lib"))
	found := f.Find("/lib/lib.so", nil, false)
	if found.Object == nil || textOf(t, found.Object) != "inside" {
		t.Fatal(found.Problem)
	}
	found.Object.Close()
}

func TestOnlyRegularFilesAreTakenFromAStore(t *testing.T) {
	s := NewStore()
	for _, path := range []string{t.TempDir(), "/dev/null"} {
		_, err := s.Open(path, nil)
		wantError(t, err, ErrNotRegular, path)
	}
}

// twoCodeSections has two sections of code, and debug sections that are relocated.
func twoCodeSections() []byte {
	symbols := make([]byte, 2*24)
	binary.LittleEndian.PutUint16(symbols[24+6:], 2)
	rela := make([]byte, 24)
	binary.LittleEndian.PutUint64(rela[8:], 1<<32|uint64(elf.R_X86_64_64))
	const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	return testFile{typ: elf.ET_REL, machine: uint16(elf.EM_X86_64), sections: []testSection{
		{name: ".text.a", typ: elf.SHT_PROGBITS, flags: code, data: make([]byte, 16)},
		{name: ".text.b", typ: elf.SHT_PROGBITS, flags: code, data: make([]byte, 16)},
		{name: ".debug_addr", typ: elf.SHT_PROGBITS, data: make([]byte, 8)},
		{name: ".rela.debug_addr", typ: elf.SHT_RELA, link: 5, info: 3, entrySize: 24, data: rela},
		{name: ".symtab", typ: elf.SHT_SYMTAB, link: 6, info: 1, entrySize: 24, data: symbols},
		{name: ".strtab", typ: elf.SHT_STRTAB, data: []byte{0}},
	}}.bytes()
}

func TestSharedObjectsAreUsedConcurrently(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "relocatable.o"), filepath.Join(dir, "compressed"), filepath.Join(dir, "bundle#1")}
	write(t, paths[0], twoCodeSections())
	write(t, paths[1], compressedFile(compressZLIB, packZLIB(bytes.Repeat([]byte("text"), 1000)), 4000))
	write(t, filepath.Join(dir, "bundle"), testBundle(bundleEntry{name: "host"}, bundleEntry{name: "hip-gfx1", data: withBuildID([]byte{1}, "wave")}))
	image := withBuildID([]byte{5}, "image")
	s := NewStore()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				for _, path := range paths {
					o, err := s.OpenNested(path, nil)
					if err != nil {
						t.Error(err)
						return
					}
					useAll(t, o.Retain())
					if o.Section(".debug_str") != nil && o.MemorySize() < 4000 {
						t.Errorf("%s: %d bytes", path, o.MemorySize())
					}
					o.Close()
				}
				o, err := s.Image("image", image, nil)
				if err != nil {
					t.Error(err)
					return
				}
				useAll(t, o)
			}
		})
	}
	group.Wait()
	if len(s.files) != 0 || len(s.images) != 0 {
		t.Errorf("%d files and %d images are in the store, expected none", len(s.files), len(s.images))
	}
}

// useAll uses an object as a target does, and closes it.
func useAll(t *testing.T, o *Object) {
	defer o.Close()
	o.SetRelocations(x86Relocations)
	laid, err := o.LaidOut()
	if err != nil {
		t.Error(err)
		return
	}
	laid.SetRelocations(x86Relocations)
	if again, _ := o.LaidOut(); again != laid {
		t.Error("an object is laid out twice")
	}
	for _, of := range []*Object{o, laid} {
		for _, section := range of.Sections() {
			b, err := section.Data()
			if err != nil && !errors.Is(err, ErrNoData) {
				t.Error(err)
			}
			if section.Name == ".debug_addr" && binary.LittleEndian.Uint64(b) != of.Section(".text.b").Address {
				t.Errorf("relocated to %#x, expected %#x", b, of.Section(".text.b").Address)
			}
			if _, err := section.References(); err != nil {
				t.Error(err)
			}
		}
		if _, err := of.Symbols(); err != nil {
			t.Error(err)
		}
		of.BuildID()
		of.MemorySize()
		of.Problems()
	}
}

func TestRelocationsThatAreGivenAgainChangeNothing(t *testing.T) {
	o := mustNew(t, twoCodeSections())
	data := func() []byte {
		b, err := o.Section(".debug_addr").Data()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	o.SetRelocations(x86Relocations)
	first := data()
	o.SetRelocations(x86Relocations)
	if second := data(); &first[0] != &second[0] {
		t.Error("the section is made again")
	}
	o.SetRelocations(x86Relocations[:1])
	if third := data(); &first[0] == &third[0] {
		t.Error("the section is not made again by other relocations")
	}
}

func TestFilesAreWaitedForOnlyWhileTheirTimeMayStay(t *testing.T) {
	changed := time.Unix(1e9, 5e8)
	id := identity{}
	id.ctime = changed.UnixNano()
	for after, want := range map[time.Duration]time.Duration{
		0:                     tick,
		tick / 4:              tick * 3 / 4,
		tick:                  0,
		time.Hour:             0,
		-time.Millisecond:     0, // a clock that is ahead says nothing
		-24 * 365 * time.Hour: 0,
	} {
		if got := id.unsettled(changed.Add(after)); got != want {
			t.Errorf("%v after the change: %v, expected %v", after, got, want)
		}
	}
}
