// SPDX-License-Identifier: Apache-2.0

package code

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

// rowsAndNames asks for a row and a name of every function of an object that has an
// FDE, and counts the rows.
func rowsAndNames(t testing.TB, m *Module) (rows int) {
	t.Helper()
	for _, address := range startsOf(t, m.Code) {
		var none *NoRow
		switch _, err := m.Row(t.Context(), address, true); {
		case err == nil:
			rows++
		case !errors.As(err, &none):
			t.Fatal(err)
		}
		m.Names(address, false)
	}
	return rows
}

func TestModulesOfOneFileShareACodeObject(t *testing.T) {
	l, store := newLibrary(t, 0, x86_64.New()), object.NewStore()
	load := func(change func(*target.Module, *Loading)) *Module {
		m, o := moduleOf(t, store, crash), Loading{}
		change(m, &o)
		loaded := l.Load(m, o)
		t.Cleanup(loaded.Close)
		return loaded
	}
	same := func(*target.Module, *Loading) {}
	first := load(same)
	for _, c := range []struct {
		name     string
		change   func(*target.Module, *Loading)
		isShared bool
	}{
		{"the same file", same, true},
		{"elsewhere", func(m *target.Module, _ *Loading) { m.Segments[0].Start += 0x1000 }, true},
		{"the same folders", func(_ *target.Module, o *Loading) { o.Finder = &object.Finder{} }, true},
		{"another folder beside", func(_ *target.Module, o *Loading) { o.Finder = &object.Finder{Folders: []string{"/tmp"}} }, false},
		{"another architecture", func(m *target.Module, _ *Loading) { m.Arch = "amdgpu" }, false},
		{"another processor", func(m *target.Module, _ *Loading) { m.Processor = "gfx90a" }, false},
		{"another processor of all threads", func(_ *target.Module, o *Loading) { o.Processor = "gfx90a" }, false},
		{"another path", func(m *target.Module, _ *Loading) { m.Path = "/elsewhere" }, false},
		{"a source module of the target", func(m *target.Module, _ *Loading) {
			m.SourceModule = func() ([]byte, error) { return nil, os.ErrNotExist }
		}, false},
		{"not to be shared", func(_ *target.Module, o *Loading) { o.IsAlone = true }, false},
		{"no file", func(m *target.Module, _ *Loading) { m.Object = nil }, false},
	} {
		if m := load(c.change); (m.Code == first.Code) != c.isShared {
			t.Errorf("%s: shared %v, expected %v", c.name, m.Code == first.Code, c.isShared)
		}
	}
}

// TestCodeThatIsWrittenWhenItIsLoadedIsNotShared has segments of code that the file
// does not have whole.
func TestCodeThatIsWrittenWhenItIsLoadedIsNotShared(t *testing.T) {
	data, err := os.ReadFile(crash)
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.New("packed", data)
	if err != nil {
		t.Fatal(err)
	}
	if !hasOwnCode(o) {
		t.Error("a program has not its own code")
	}
	// p_memsz of the segment of code grows beyond p_filesz (64-bit program headers).
	for at, p := range o.Programs() {
		if p.Flags&1 != 0 && p.MemSize > 0 && p.Type == 1 {
			data[64+56*at+40+2]++
		}
	}
	if o, err = object.New("packed", data); err != nil {
		t.Fatal(err)
	}
	if hasOwnCode(o) {
		t.Error("a program whose code is not in the file has its own code")
	}
}

func TestAnObjectIsKeptWhileSomebodyMayAskForIt(t *testing.T) {
	l, store := newLibrary(t, 0, x86_64.New()), object.NewStore()
	first := l.Load(moduleOf(t, store, crash), Loading{})
	rows := rowsAndNames(t, first)
	first.Close()
	again := l.Load(moduleOf(t, store, crash), Loading{})
	defer again.Close()
	if again.Code != first.Code || len(again.Code.rows.found.known) < rows {
		t.Errorf("%d rows of another object, expected %d", len(again.Code.rows.found.known), rows)
	}
	first.Close() // once more
	if again.Code.usage.users != 1 {
		t.Errorf("%d users, expected 1", again.Code.usage.users)
	}
}

// TestTheLeastUsedIsForgotten has room for one of two files.
func TestTheLeastUsedIsForgotten(t *testing.T) {
	store := object.NewStore()
	copied := filepath.Join(t.TempDir(), "copy")
	data, err := os.ReadFile(crash)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, data, 0o700); err != nil {
		t.Fatal(err)
	}
	l := newLibrary(t, 1, x86_64.New())
	first, second := l.Load(moduleOf(t, store, crash), Loading{}), l.Load(moduleOf(t, store, copied), Loading{})
	rowsAndNames(t, first)
	if l.Bytes() == 0 {
		t.Error("nothing is counted")
	}
	first.Close()
	rows := rowsAndNames(t, second)
	if _, open := l.numbered[first.Code.number]; open {
		t.Error("what nobody uses was kept")
	}
	// What is loaded stays, and forgets what can be found out again.
	if n := len(second.Code.rows.found.known); n > 1 {
		t.Errorf("%d rows are kept without room", n)
	}
	if again := rowsAndNames(t, second); again != rows || rows == 0 {
		t.Errorf("%d rows, expected %d as before", again, rows)
	}
	second.Close()
	if n := l.Bytes(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// TestBytesOfALibraryAreCounted holds what is counted when all are gone.
func TestBytesOfALibraryAreCounted(t *testing.T) {
	l, store := newLibrary(t, 0, x86_64.New()), object.NewStore()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				m := l.Load(moduleOf(t, store, crash), Loading{})
				rowsAndNames(t, m)
				m.Close()
			}
		})
	}
	wg.Wait()
	if l.Bytes() == 0 {
		t.Error("nothing is kept")
	}
	l.Close()
	if n := l.Bytes(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

// TestWhatIsForgottenIsGivenBack asks an object for all that can be found out again:
// once that is forgotten, its files are all that is counted.
func TestWhatIsForgottenIsGivenBack(t *testing.T) {
	l := newLibrary(t, 0, x86_64.New())
	m := l.Load(moduleOf(t, nil, crash), Loading{})
	defer m.Close()
	o := m.Code
	functions, variables := 0, 0
	ask := func(address uint64) {
		f, err := o.Function(address)
		if err != nil {
			t.Error(err)
		}
		if !f.IsZero() {
			functions++
		}
		if v := o.Variables(address); v != nil {
			variables += len(v.List)
		}
		if _, err := o.Call(address, dwarf.Entry{}); err != nil {
			t.Error(err)
		}
		o.KeepSite(address, CallSite{IsAfterCall: true})
	}
	for range 2 { // the second time nothing is new
		rowsAndNames(t, m)
		for _, address := range startsOf(t, o) {
			ask(address)
			_, exits := o.Exits(t.Context(), address)
			_, read := m.ReadRow(t.Context(), address, true)
			_, row := o.RowFrom(t.Context(), address, address, true)
			if err := errors.Join(exits, read, row); err != nil {
				t.Error(err)
			}
		}
		o.Named("main", false)
		o.Named("main", true)
	}
	if functions == 0 || variables == 0 {
		t.Errorf("%d functions and %d variables, expected some of each", functions, variables)
	}
	o.forgetFound()
	if all, files := o.usage.bytes.Load(), o.usage.fileBytes.Load(); all != files || files == 0 {
		t.Errorf("%d bytes are counted once all is forgotten, expected the %d of the files", all, files)
	}
	if n := l.bytes.Load(); n != o.usage.bytes.Load() {
		t.Errorf("the library counts %d bytes, its one object %d", n, o.usage.bytes.Load())
	}
}

// TestNamesAreFoundOnce holds that asking again allocates nothing.
func TestNamesAreFoundOnce(t *testing.T) {
	m := newLibrary(t, 0, x86_64.New()).Load(moduleOf(t, nil, crash), Loading{})
	defer m.Close()
	starts := startsOf(t, m.Code)
	named := 0
	for _, a := range starts {
		if len(m.Names(a, false)) > 0 {
			named++
		}
	}
	if named < 5 {
		t.Errorf("%d of %d functions have names", named, len(starts))
	}
	if n := testing.AllocsPerRun(10, func() {
		for _, a := range starts {
			m.Names(a, false)
		}
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

// TestACutFileIsAnErrorForAllWhoShareIt cuts a file that is mapped, and asks twice: the
// first fault must not leave the object locked.
func TestACutFileIsAnErrorForAllWhoShareIt(t *testing.T) {
	data, err := os.ReadFile(crash)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
	l, store := newLibrary(t, 0, x86_64.New()), object.NewStore()
	m := l.Load(moduleOf(t, store, path), Loading{})
	defer m.Close()
	address := m.Object.Entry() + 0x100
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 3 {
			var row *Row
			err := object.Guard(func() (err error) { row, err = m.Row(t.Context(), address, true); return err })
			if row != nil || err == nil {
				t.Errorf("row %+v of a file without bytes, %v", row, err)
			}
			m.AllNames(t.Context(), address, false)
			m.Info()
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the object stays locked")
	}
}
