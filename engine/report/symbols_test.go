package report

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/symbol"
)

func TestNamesOfFunctionsAsLinkersHaveThem(t *testing.T) {
	for _, c := range []struct {
		frame       symbol.Frame
		want, short string
	}{
		{symbol.Frame{Function: "ns::f(int)", LinkageName: "_ZN2ns1fEi", Name: "f"}, "_ZN2ns1fEi", "f"},
		{symbol.Frame{Function: "f", Name: "f"}, "f", "f"},
		// Without a linkage name what is around the function is left out.
		{symbol.Frame{Function: "ns::f", Name: "f"}, "f", "f"},
		// A linkage name that is not mangled is Function itself.
		{symbol.Frame{Function: "label", Name: "f"}, "label", "f"},
		{symbol.Frame{Function: "__clang_ocl_kern_imp_f", Name: "f"}, "__clang_ocl_kern_imp_f", "f"},
		{symbol.Frame{Function: "f"}, "f", "f"},
	} {
		for want, functions := range map[*string]FunctionNames{&c.want: LinkageNames, &c.short: ShortNames} {
			var b strings.Builder
			w := NewSymbolWriter(&b, SymbolOptions{Functions: functions})
			w.Write(&Answer{HasAddress: true, Frames: []symbol.Frame{c.frame}})
			if got, _, _ := strings.Cut(b.String(), "\n"); got != *want {
				t.Errorf("%+v: %q, want %q", c.frame, got, *want)
			}
		}
	}
}
