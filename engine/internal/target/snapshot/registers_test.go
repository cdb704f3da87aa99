// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

func TestRegistersAreParsedAsSnapshotsWriteThem(t *testing.T) {
	scalar := sdk.RegisterInfo{Name: "r", Bits: 32}
	odd := sdk.RegisterInfo{Name: "r", Bits: 12}
	float := sdk.RegisterInfo{Name: "st", Bits: 80, Class: sdk.Float}
	vector := sdk.RegisterInfo{Name: "v", Bits: 256, Class: sdk.Vector}
	small := sdk.RegisterInfo{Name: "mm", Bits: 64, Class: sdk.Vector}
	wide := sdk.RegisterInfo{Name: "grf", Bits: 256}
	full := strings.Repeat("0123456789abcdef", 4)
	for _, tt := range []struct {
		info  sdk.RegisterInfo
		order sdk.ByteOrder
		text  string
		want  string // hexadecimal
		wrong string
	}{
		{scalar, sdk.LittleEndian, "0x1", "01000000", ""},
		{scalar, sdk.LittleEndian, "0XdeadBEEF", "efbeadde", ""},
		{scalar, sdk.LittleEndian, "0x000000000000000001234", "34120000", ""},
		{scalar, sdk.BigEndian, "0x1234", "00001234", ""},
		{scalar, sdk.LittleEndian, "0x100000000", "", "r is 0x100000000, expected at most 32 bits"},
		{scalar, sdk.LittleEndian, "01000000", "", "expected 0x and hexadecimal digits"},
		{scalar, sdk.LittleEndian, "", "", "expected 0x and hexadecimal digits"},
		{scalar, sdk.LittleEndian, "0xg", "", "expected 0x and hexadecimal digits"},
		{odd, sdk.LittleEndian, "0xfff", "ff0f", ""},
		{odd, sdk.LittleEndian, "0x1000", "", "expected at most 12 bits"},
		{float, sdk.LittleEndian, "0x3fff8000000000000001", "0100000000000080ff3f", ""},
		{float, sdk.LittleEndian, "0x13fff8000000000000001", "", "expected at most 80 bits"},
		{vector, sdk.LittleEndian, full, full, ""},
		{vector, sdk.BigEndian, full, strings.Repeat("efcdab8967452301", 4), ""},
		{vector, sdk.LittleEndian, full[:32], full[:32], ""},
		{vector, sdk.LittleEndian, full[:30], "", "v has 30 hexadecimal digits, expected 64"},
		{vector, sdk.LittleEndian, "0x01", "", "v has 4 hexadecimal digits, expected 64"},
		{vector, sdk.LittleEndian, "", "", "v has 0 hexadecimal digits, expected 64"},
		{vector, sdk.LittleEndian, strings.Repeat("zz", 32), "", "v is not hexadecimal"},
		{small, sdk.LittleEndian, full[:16], full[:16], ""},
		{small, sdk.LittleEndian, full[:32], "", "mm has 32 hexadecimal digits, expected 16"},
		{wide, sdk.LittleEndian, full, full, ""},
	} {
		got, err := ParseRegister(tt.info, tt.order, tt.text)
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%s of %d bits, %q: %x, %v; expected %q", tt.info.Name, tt.info.Bits, tt.text, got, err, tt.wrong)
			}
			continue
		}
		if err != nil || hex.EncodeToString(got) != tt.want {
			t.Errorf("%s of %d bits, %q: %x, %v; expected %s", tt.info.Name, tt.info.Bits, tt.text, got, err, tt.want)
		}
	}
}
