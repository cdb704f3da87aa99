// SPDX-License-Identifier: Apache-2.0

package swiftname

import (
	"strings"
	"testing"
)

// TestSimpleNames has names whose whole forms are known from the mangling's document.
func TestSimpleNames(t *testing.T) {
	for name, want := range map[string]string{
		"$s4main3FooV3baryyF":          "main.Foo.bar",
		"_$s4main3FooV3baryyF":         "main.Foo.bar",
		"$s4main3FooV3add1x1yS2i_SitF": "main.Foo.add",
		"$s4main3FooC1xSivg":           "main.Foo.x.get",
		"$s4main3FooCACycfC":           "main.Foo.init",
		"$s4main3FooCfD":               "main.Foo.deinit",
		"$s4main3runyyFyycfU_":         "closure in main.run",
		"$s4main5outeryyF5innerL_yyF":  "function in main.outer",
		"$s10AppWindows0A4BaseV0B0yyF": "AppWindows.AppBase.Windows",
		"$sSS4mainE5shoutSSyF":         "Swift.String.shout",
		"$s4main3Foo33_0123456789ABCDEF0123456789ABCDEFLLV3baryyF": "main.Foo.bar",
		"_T04main3barSiyF": "main.bar",
	} {
		got, ok := Read(name)
		if want += Mark; !ok || got != want || !IsMangled(name) {
			t.Errorf("%s: %q, %v, expected %q", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "$s", "$s4mai", "main", "$s4main", "$s99999999999999999999a", "$s00", "$s0z", "_Z1fv", "$st", "$s4ma\x01n3fooyyF"} {
		if got, ok := Read(name); ok {
			t.Errorf("%q: %q, expected nothing", name, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("$s10AppWindows0A4BaseV0B0yyF")
	f.Add("$sSS4main5shoutSSyF")
	f.Fuzz(func(t *testing.T, name string) {
		if got, ok := Read(name); ok && (!strings.HasSuffix(got, Mark) || len(got) > maxNames*maxName) {
			t.Errorf("%q: %q", name, got)
		}
	})
}
