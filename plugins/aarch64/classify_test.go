// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// classify asks about one PC, and checks the answer as the engine does.
func classify(t *testing.T, pc uint64, before []byte) (sdk.ReturnClass, uint64) {
	t.Helper()
	req := &sdk.ClassifyReturnRequest{PCs: []uint64{pc}, Offsets: []uint32{0, uint32(len(before))}, Code: before}
	answer, err := New().ClassifyReturn(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(bindDescription(), req); err != nil {
		t.Fatal(err)
	}
	return answer.Classes[0], answer.Targets[0]
}

func TestClassifyReturn(t *testing.T) {
	for name, c := range map[string]struct {
		word   uint32
		class  sdk.ReturnClass
		target uint64
	}{
		"bl forward":  {0x94000004, sdk.AfterDirectCall, 0x1010},
		"bl backward": {0x97ffffff, sdk.AfterDirectCall, 0xffc},
		"blr x2":      {0xd63f0040, sdk.AfterIndirectCall, 0},
		"blraa":       {0xd73f0841, sdk.AfterIndirectCall, 0},
		"blraaz":      {0xd63f085f, sdk.AfterIndirectCall, 0},
		"b":           {0x14000004, sdk.NotAfterCall, 0},
		"br x2":       {0xd61f0040, sdk.NotAfterCall, 0},
		"ret":         {0xd65f03c0, sdk.NotAfterCall, 0},
		"nop":         {0xd503201f, sdk.NotAfterCall, 0},
	} {
		class, target := classify(t, 0x1004, binary.LittleEndian.AppendUint32(nil, c.word))
		if class != c.class || target != c.target {
			t.Errorf("%s: class %d, target %#x, expected %d, %#x", name, class, target, c.class, c.target)
		}
	}
	if class, _ := classify(t, 0x1002, []byte{4, 0, 0, 0x94}); class != sdk.NotAfterCall {
		t.Errorf("at an address of no instruction: class %d", class)
	}
	if class, _ := classify(t, 0x1004, []byte{0, 0x94}); class != sdk.UnknownReturn {
		t.Errorf("of two bytes: class %d", class)
	}
}

func FuzzClassifyReturn(f *testing.F) {
	f.Add(uint64(0x1004), []byte{4, 0, 0, 0x94})
	f.Fuzz(func(t *testing.T, pc uint64, before []byte) {
		if class, target := classify(t, pc, before); class != sdk.AfterDirectCall && target != 0 {
			t.Errorf("class %d has target %#x", class, target)
		}
	})
}
