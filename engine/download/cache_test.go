// SPDX-License-Identifier: Apache-2.0

package download

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSettings(t *testing.T) {
	c := Cache{Dir: t.TempDir()}
	for _, s := range []setting{cleanInterval, maxUnused, missAge} {
		if got := c.setting(s); got != s.usual {
			t.Errorf("%s: %v", s.file, got)
		}
		b, err := os.ReadFile(filepath.Join(c.Dir, s.file))
		if err != nil || string(b) != fmt.Sprint(int(s.usual.Seconds())) {
			t.Errorf("%s has %q, %v", s.file, b, err)
		}
	}
	for text, want := range map[string]time.Duration{
		"0": 0, "12": 12 * time.Second, " 12\n": 12 * time.Second, "12 s": 12 * time.Second, "-3": -3 * time.Second,
		"": missAge.usual, "-": missAge.usual, "x": missAge.usual, "99999999999999999999": missAge.usual,
		"9223372036854775807": 9223372036 * time.Second,
	} {
		if err := os.WriteFile(filepath.Join(c.Dir, missAge.file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.setting(missAge); got != want {
			t.Errorf("%q: %v, expected %v", text, got, want)
		}
	}
}
