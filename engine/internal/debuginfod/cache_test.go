// SPDX-License-Identifier: Apache-2.0

package debuginfod

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/object"
)

// TestNamesOfSources: the two rules that elfutils has had. The first is held against
// debuginfod-find too; the values of the second were computed apart from this package,
// by the comment of elfutils 0.192 on it.
func TestNamesOfSources(t *testing.T) {
	long := "/" + strings.Repeat("d", 117)
	for _, c := range []struct{ path, escaped, hashed string }{
		{"/usr/include/stdio.h", "source##usr##include##stdio.h", "source-d8d56a69-#usr#include#stdio.h"},
		{"/é.c", "source##é.c", "source-0b2ea0f1-###.c"},
		{"/#/a##", "source###_##a#_#_", "source-" + hashed("/#/a##")},
		{long[:117], "source##" + long[1:117], "source-ef5cb424-#" + long[1:117]},
		{long, "source##" + long[1:], "source-daf33908-" + long[1:]},
		{"/" + strings.Repeat("long/", 40) + "x.cc", "", "source-75c5d178-ng#" + strings.Repeat("long#", 22) + "x.cc"},
	} {
		n, err := cacheName(object.RemoteFile{Kind: object.RemoteSource, BuildID: []byte{1, 0xab}, Source: c.path})
		want := []string{c.escaped, c.hashed}
		if c.escaped == "" {
			want = want[1:] // no file can have the other name
		}
		if err != nil || n.Dir != "01ab" || !slices.Equal(n.Names, want) {
			t.Errorf("%s: %q %v, expected %q", c.path, n.Names, err, want)
		}
	}
}

func FuzzCacheName(f *testing.F) {
	f.Add("source", []byte{1, 2}, "/usr/../a#b c")
	f.Add("debuginfo", []byte{1}, "")
	f.Fuzz(func(t *testing.T, kind string, id []byte, source string) {
		of := object.RemoteFile{Kind: object.RemoteKind(kind), BuildID: id, Source: source}
		n, err := cacheName(of)
		if err != nil {
			return
		}
		for _, name := range append([]string{n.Dir}, n.Names...) {
			if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > maxName-download.TemporaryBytes {
				t.Errorf("%q", name)
			}
		}
		for _, name := range n.Names {
			if !isCacheName(name) || !isCacheName(name+".AbC123") || !isIDName(n.Dir) {
				t.Errorf("%q of %q is not cleaned", name, n.Dir)
			}
		}
		server, err := ParseURL("http://host:80/a%2Fb/")
		if err != nil {
			t.Fatal(err)
		}
		u := fileURL(server, of)
		r, err := http.NewRequest(http.MethodGet, u.String(), nil)
		if err != nil || r.URL.Host != "host:80" || r.URL.RawQuery != "" || r.URL.Fragment != "" || r.URL.EscapedPath() != u.RawPath {
			t.Errorf("%v %v", u, err)
		}
		if of.Kind == object.RemoteSource && !strings.HasSuffix(r.URL.Path, path.Join("/", string(of.Kind))+source) {
			t.Errorf("%q asks for %q", source, r.URL.Path)
		}
	})
}

// TestCleaning removes what was not used for long, and nothing that clients did not put
// there: a cache may be any directory that a user names.
func TestCleaning(t *testing.T) {
	c := download.Cache{Dir: t.TempDir(), IsDir: isIDName, IsFile: isCacheName}
	elsewhere := filepath.Join(t.TempDir(), "01ab")
	old, young := time.Now().Add(-8*24*time.Hour), time.Now().Add(-6*24*time.Hour)
	put := func(name string, at time.Time) {
		t.Helper()
		name = filepath.Join(c.Dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, at, young); err != nil {
			t.Fatal(err)
		}
	}
	gone := []string{"01ab/debuginfo", "01ab/executable", "01ab/source##a.c", "01ab/source-01234567-a.c", "01ab/debuginfo.AbC123", "01ab/hdr-debuginfo", "01ab/section-.text", "02ab/debuginfo"}
	kept := []string{"02ab/executable", "01ab/sources.list", "01ab/notes", "01ab/debuginfo.backup.tar", "0A/debuginfo", "abc/debuginfo", "x/debuginfo", "debuginfo", "01ab/debuginfo.d/debuginfo", "cafe/deep/debuginfo"}
	for _, name := range gone {
		put(name, old)
	}
	for _, name := range kept {
		put(name, old)
	}
	put("02ab/executable", young)
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "debuginfo"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(elsewhere, "debuginfo"), old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(c.Dir, "beef")); err != nil {
		t.Fatal(err)
	}
	put("03ab/debuginfo", old)
	if err := os.Chtimes(filepath.Join(c.Dir, "03ab"), old, old); err != nil {
		t.Fatal(err)
	}
	check := func(when string, isCleaned bool) {
		t.Helper()
		for _, name := range gone {
			if _, err := os.Lstat(filepath.Join(c.Dir, name)); (err != nil) != isCleaned {
				t.Errorf("%s: %s: %v", when, name, err)
			}
		}
		for _, name := range append([]string{"beef/debuginfo"}, kept...) {
			if _, err := os.Stat(filepath.Join(c.Dir, name)); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	check("the first time", false)
	interval := filepath.Join(c.Dir, "cache_clean_interval_s")
	if err := os.Chtimes(interval, old, time.Now().Add(-25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	check("a day later", true)
	if _, err := os.Stat(filepath.Join(c.Dir, "03ab/debuginfo")); err == nil {
		t.Error("03ab/debuginfo is there")
	}
	if info, err := os.Stat(interval); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Error("that the cache was cleaned is not noted")
	}
}

func TestEnvironment(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "headers")
	if err := os.WriteFile(file, []byte("X-Token: a b\n\nnone\nBad Name: x\nHost: evil\r\nAuthorization:Basic eA==\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(pairs ...string) (Options, string) {
		o, err := FromEnvironment(func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		})
		return o, fmt.Sprint(err)
	}
	o, err := read("HOME", home)
	if len(o.URLs) != 0 || o.Timeout != DefaultTimeout || o.Retries != 2 || o.MaxSize != 0 || o.MaxTime != 0 || err != "<nil>" || o.Cache != filepath.Join(home, ".cache/debuginfod_client") {
		t.Errorf("nothing set: %+v %v", o, err)
	}
	o, err = read("HOME", home, "XDG_CACHE_HOME", "/xdg", "DEBUGINFOD_URLS", " https://a/b/  localhost:8002 file:///d ima:enforcing http://signed ima:ignore ftp://x http://y?q ",
		"DEBUGINFOD_TIMEOUT", "5", "DEBUGINFOD_MAXTIME", "7", "DEBUGINFOD_MAXSIZE", "1000", "DEBUGINFOD_RETRY_LIMIT", "0", "DEBUGINFOD_HEADERS_FILE", file)
	if got := fmt.Sprint(o.URLs); got != "[https://a/b/ http://localhost:8002 file:///d http://y]" {
		t.Error(got)
	}
	if o.Timeout != 5*time.Second || o.MaxTime != 7*time.Second || o.MaxSize != 1000 || o.Retries != 0 || o.Cache != "/xdg/debuginfod_client" {
		t.Errorf("%+v", o)
	}
	if !strings.Contains(err, "http://signed is not asked: signatures") || !strings.Contains(err, "ftp://x: expected http://HOST") {
		t.Error(err)
	}
	if got := fmt.Sprint(o.Headers); got != "map[Authorization:[Basic eA==] X-Token:[a b]]" {
		t.Error(got)
	}
	if err := os.Mkdir(filepath.Join(home, ".debuginfod_client_cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	if o, _ := read("HOME", home, "XDG_CACHE_HOME", "/xdg"); o.Cache != filepath.Join(home, ".debuginfod_client_cache") {
		t.Error(o.Cache)
	}
	if o, _ := read("HOME", home, "DEBUGINFOD_CACHE_PATH", "/named"); o.Cache != "/named" {
		t.Error(o.Cache)
	}
	if o, _ := read("DEBUGINFOD_TIMEOUT", "-1", "DEBUGINFOD_MAXSIZE", "-5", "DEBUGINFOD_RETRY_LIMIT", "many"); o.Cache != "" || o.Timeout != 0 || o.MaxSize != 0 || o.Retries != 2 {
		t.Errorf("%+v", o)
	}
	if _, err := read("DEBUGINFOD_URLS", "http://a", "DEBUGINFOD_HEADERS_FILE", file+".none"); !strings.Contains(err, "DEBUGINFOD_HEADERS_FILE") {
		t.Error(err)
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add([]byte("X-Token: a\r\nHost: b\n: c\nA B: d\nE: f\x00\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h := parseHeaders(bytes.NewReader(text))
		var out bytes.Buffer
		if err := h.Write(&out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\r\n"), "\r\n") {
			name, _, ok := strings.Cut(line, ": ")
			if out.Len() > 0 && (!ok || h.Get(name) == "" || name == "Host") {
				t.Errorf("%q of %q", line, text)
			}
		}
	})
}

func FuzzURL(f *testing.F) {
	f.Add("http://a:1/b?c#d")
	f.Add("file:///x y")
	f.Add("localhost:8002")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURL(text)
		if err != nil {
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "file" {
			t.Errorf("%q is %v", text, u)
		}
		if u.RawQuery != "" || u.Fragment != "" {
			t.Errorf("%q is %v", text, u)
		}
	})
}
