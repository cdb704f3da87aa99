// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what dpkg checks installed files by
	"embed"
	"fmt"
	"path"
	"strings"
	"time"
)

// debian is a Debian package of a revision: an ar archive of two tar archives (deb(5)).
type debian struct {
	revision
	arch string // Go's name, which is Debian's for both
}

// number is the version as dpkg orders them: a candidate sorts before its release.
func (d *debian) number() string {
	v := strings.TrimPrefix(d.version, "v")
	before, after, ok := strings.Cut(v, "-")
	if ok {
		v = before + "~" + strings.ReplaceAll(after, "-", ".")
	}
	return v + "-1"
}

func (d *debian) name() string { return fmt.Sprintf("unwindd_%s_%s.deb", d.number(), d.arch) }

// pack makes the package of the files of an archive.
func (d *debian) pack(files []file, linked []*linkedModule) ([]byte, error) {
	installed, err := d.installed(files, linked)
	if err != nil {
		return nil, err
	}
	size := 0
	var sums strings.Builder
	for _, f := range installed {
		size += (len(f.content) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.content), strings.TrimPrefix(f.path, "./")) //nolint:gosec // as above
	}
	about := []file{{"./control", 0o644, d.control(size)}, {"./md5sums", 0o644, []byte(sums.String())}}
	if about, err = addScripts(about, installed); err != nil {
		return nil, err
	}
	control, err := tarGz(about, d.time)
	if err != nil {
		return nil, err
	}
	data, err := tarGz(installed, d.time)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, f := range []file{{"debian-binary", 0, []byte("2.0\n")}, {"control.tar.gz", 0, control}, {"data.tar.gz", 0, data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", f.path, d.time.Unix(), 0, 0, "100644", len(f.content))
		b.Write(f.content)
		if len(f.content)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes(), nil
}

//go:embed systemd/prerm systemd/postrm
var scripts embed.FS

// addScripts adds, where there is a service, the script of its removal, and the list of files
// that users change (deb-conffiles(5)).
func addScripts(about, installed []file) ([]file, error) {
	var changed []byte
	for _, f := range installed {
		if path, ok := strings.CutPrefix(f.path, "./etc/"); ok {
			changed = fmt.Appendf(changed, "/etc/%s\n", path)
		}
	}
	if changed == nil {
		return about, nil
	}
	about = append(about, file{"./conffiles", 0o644, changed})
	for _, name := range []string{"prerm", "postrm"} {
		text, err := scripts.ReadFile("systemd/" + name)
		if err != nil {
			return nil, err
		}
		about = append(about, file{"./" + name, 0o755, text})
	}
	return about, nil
}

// control is the package's control file.
func (d *debian) control(size int) []byte {
	return fmt.Appendf(nil, `Package: unwindd
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Section: devel
Priority: optional
Homepage: https://%s
Description: stacks of crashed and profiled processes, of CPUs and accelerators
 unwindd prints the stacks of core dumps, minidumps and snapshots with
 functions, lines, inlined calls and variables, and makes profiles of
 recordings of perf.
 .
 One engine walks the threads of the processor and the waves of accelerators.
 The stack of a wave continues in the thread that launched it.
`, d.number(), d.arch, d.author, size, module)
}

// installed are the files where Debian's policy has them.
func (d *debian) installed(files []file, linked []*linkedModule) ([]file, error) {
	var list []file
	var wrong error
	add := func(path string, mode int64, content []byte) { list = append(list, file{path, mode, content}) }
	packed := func(path string, content []byte) {
		b, err := compressed(content)
		if err != nil {
			wrong = err
		}
		add(path+".gz", 0o644, b)
	}
	for _, f := range files {
		name := "./usr/" + f.path
		switch {
		case f.path == docDir+"/LICENSE":
			// Debian has its text already.
		case f.path == docDir+"/CHANGELOG.md":
			packed("./usr/"+docDir+"/changelog", f.content)
		case f.path == docDir+"/THIRD-PARTY.txt":
			packed(name, f.content)
		case strings.HasPrefix(f.path, "share/man/"):
			packed(name, f.content)
		case strings.HasPrefix(f.path, "etc/"):
			add("./"+f.path, f.mode, f.content)
		case strings.HasPrefix(f.path, "share/zsh/"):
			add("./usr/share/zsh/vendor-completions/"+path.Base(f.path), f.mode, f.content)
		default:
			add(name, f.mode, f.content)
		}
	}
	packed("./usr/"+docDir+"/changelog.Debian", fmt.Appendf(nil, "unwindd (%s) unstable; urgency=medium\n\n  * unwindd %s.\n\n -- %s  %s\n",
		d.number(), d.version, d.author, d.time.Format(time.RFC1123Z)))
	add("./usr/"+docDir+"/copyright", 0o644, d.copyright(linked))
	add("./usr/share/lintian/overrides/unwindd", 0o644, []byte(overrides))
	return list, wrong
}

// overrides are the lintian rules that do not fit.
const overrides = `# It is in Go, and needs no library.
unwindd: statically-linked-binary [usr/bin/unwindd]
unwindd: statically-linked-binary [usr/libexec/unwindd/unwindd-plugins]
# It is no upload to Debian.
unwindd: initial-upload-closes-no-bugs *
`

// copyright names the licence of the package and the licences of the modules linked into it.
func (d *debian) copyright(linked []*linkedModule) []byte {
	return fmt.Appendf(nil, `unwindd
Source: https://%s
Commit: %s
Copyright: %d the authors of unwindd
License: Apache-2.0, whose text is in /usr/share/common-licenses/Apache-2.0

The executable has parts of the modules below. Their licences and notices are in
THIRD-PARTY.txt.gz, beside this file.

%s`, module, d.commit, d.time.Year(), summary(linked))
}
