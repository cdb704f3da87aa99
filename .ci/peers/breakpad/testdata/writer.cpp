// A library that is loaded before others, and has Breakpad's handler write a minidump
// into the folder that the variable MINIDUMPS names, in the process that crashes.
#include <cstdlib>
#include "client/linux/handler/exception_handler.h"

__attribute__((constructor)) static void install() {
	static google_breakpad::ExceptionHandler handler(
		google_breakpad::MinidumpDescriptor(std::getenv("MINIDUMPS")), nullptr, nullptr, nullptr, true, -1);
}
