// SPDX-License-Identifier: Apache-2.0

// Package symbolize says what the code and data at addresses of a file are called, as
// llvm-symbolizer and addr2line do. A Session answers questions as they are asked on
// the command line, or read, and writes the answers in the style of either tool:
//
//	s := symbolize.New(symbolize.Options{})
//	defer s.Close()
//	session := symbolize.Session{Symbolizer: s, Object: "server", Inlines: true}
//	return session.Run(os.Stdout, []string{"0x401257", "0x401300"}, nil)
//
// An Addr2line does so by addr2line's protocol. Who wants the answers themselves opens
// a File. Of the names that code has each tool takes its own: FramesLLVM and FramesGNU
// are their two manners.
package symbolize
