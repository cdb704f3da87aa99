// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// TestOpenObjectNamesFunctions: functions of Go with and without the name of their ABI, once
// each, with an end where the symbol has no size; of another machine there are none.
func TestOpenObjectNamesFunctions(t *testing.T) {
	req := &sdk.OpenObjectRequest{Machine: machine,
		Sections: []sdk.SectionInfo{{Name: ".text", Address: 0x1000, Size: 0x1000}, {Name: ".gopclntab"}},
		Symbols: []sdk.SymbolInfo{{Name: "runtime.mcall.abi0", Address: 0x1100, Size: 0x40}, {Name: "runtime.goexit", Address: 0x1200},
			{Name: "runtime.goexit.abi0", Address: 0x1200}, {Name: "runtime.sigpanic", Address: 0x1300, Size: 8}, {Name: "main", Address: 0x1400, Size: 8}, {Name: "runtime.nanotime1.abi0", Address: 0x1500, Size: 0x80}}}
	a, err := New().OpenObject(context.Background(), nil, req)
	if err != nil || len(a.Functions) != 4 || a.DefaultRules == nil {
		t.Fatalf("%+v, %v", a, err)
	}
	for i, want := range []sdk.Function{{Start: 0x1100, End: 0x1140, Kind: sdk.StackStartFunction}, {Start: 0x1200, End: 0x1300, Kind: sdk.OutermostFunction}, {Start: 0x1300, End: 0x1308, Kind: sdk.InjectedFunction},
		{Start: 0x1500, End: 0x1580, Kind: sdk.TrampolineFunction}} {
		f := a.Functions[i]
		if f.Start != want.Start || f.End != want.End || f.Kind != want.Kind || (f.DefaultRules != nil) != (f.Kind == sdk.InjectedFunction) {
			t.Errorf("%+v, expected %+v", f, want)
		}
	}
	req.Machine = 62
	if a, err := New().OpenObject(context.Background(), nil, req); err != nil || len(a.Functions) > 0 || a.DefaultRules != nil {
		t.Errorf("of another machine %+v, %v", a, err)
	}
}
