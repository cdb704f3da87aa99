// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// decodedSources are programs of Fortran and Ada, with the names that gdb has in the place
// of some symbols.
var decodedSources = []struct {
	tools, command []string
	files          map[string]string
	want           map[string]string
}{
	{
		[]string{"gfortran"}, []string{"gfortran", "-g", "-O0", "-o", "program", "main.f90"},
		map[string]string{"main.f90": `module geo
contains
 subroutine area(n)
  integer :: n
  call inner(n)
 contains
  subroutine inner(k)
   integer :: k
   call ext(k)
  end subroutine
 end subroutine
end module
program prog
 use geo
 call area(3)
end program
subroutine ext(k)
 integer :: k
 k = 1
end subroutine
`},
		map[string]string{"__geo_MOD_area": "geo::area", "inner.0": "area::inner", "ext_": "ext", "MAIN__": "prog"},
	},
	{
		[]string{"gnatmake-12"}, []string{"gnatmake-12", "-g", "-O0", "-o", "program", "main_prog.adb"},
		map[string]string{
			"pkg.ads": "package Pkg is procedure Outer (N : Integer); procedure Outer (F : Float); function \"+\" (A : Integer; B : Float) return Integer; end Pkg;\n",
			"pkg.adb": `package body Pkg is
   function "+" (A : Integer; B : Float) return Integer is begin return A; end "+";
   procedure Outer (N : Integer) is
      procedure Inner (M : Integer) is begin if M < N then Inner (M + 1); end if; end Inner;
   begin Inner (N); end Outer;
   procedure Outer (F : Float) is begin Outer (1 + F); end Outer;
end Pkg;
`,
			"main_prog.adb": "with Pkg; procedure Main_Prog is begin Pkg.Outer (1); end Main_Prog;\n",
		},
		map[string]string{"pkg__outer": "pkg.outer", "pkg__outer__2": "pkg.outer", "pkg__Oadd": `pkg."+"`, "_ada_main_prog": "main_prog", "pkg__outer__inner.": "pkg.outer.inner"},
	},
}

func TestNamesOfFortranAndAdaAreThoseOfGDB(t *testing.T) {
	for _, c := range decodedSources {
		t.Run(c.tools[0], func(t *testing.T) {
			oracle.Tools(t, c.tools...)
			dir := t.TempDir()
			build := oracle.Build{}
			copies := []string{"cp"}
			for name, text := range c.files {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				build.Sources = append(build.Sources, path)
				copies = append(copies, path)
			}
			build.Commands = [][]string{append(copies, "."), c.command}
			path := filepath.Join(build.Make(t), "program")
			o, err := object.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			r := New(o, nil)
			f, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			symbols, err := f.Symbols()
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, s := range symbols {
				want, ok := c.want[s.Name]
				if at := strings.IndexByte(s.Name, '.'); !ok && at > 0 {
					want, ok = c.want[s.Name[:at+1]]
				}
				if !ok || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
					continue
				}
				found++
				frames, _ := r.Frames(nil, s.Value+4)
				if len(frames) != 1 || frames[0].Function != want || frames[0].Start != s.Value {
					t.Errorf("%s: %+v, expected %s", s.Name, frames, want)
				}
			}
			if found != len(c.want) {
				t.Errorf("%d of %d symbols are there", found, len(c.want))
			}
		})
	}
}
