#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks Wine for 32-bit x86 and MinGW's libraries for it, as Debian has them, into a folder (1 GB), and makes a prefix:
#
#   wine32.sh FOLDER
#
# Nothing is installed. libc6-i386 and libz-mingw-w64 have to be.
set -e
mkdir -p "$1/lists/partial" "$1/cache/archives/partial" "$1/root/usr/share" "$1/packages"
cd "$1"
folder=$PWD
touch status
i386() {
	apt-get -q -o APT::Architecture=i386 -o APT::Architectures=i386 -o APT::Sandbox::User= -o Dir::State::lists="$folder/lists" -o Dir::State::status="$folder/status" -o Dir::Cache="$folder/cache" "$@"
}
cd packages
i386 update || echo "some lists are not there; the packages may be in others"
i386 download wine32 libwine libunwind8 liblzma5 libfreetype6 zlib1g libpng16-16 libbrotli1
apt-get -q -o APT::Sandbox::User= download gcc-mingw-w64-i686-win32 gcc-mingw-w64-i686-win32-runtime g++-mingw-w64-i686-win32 mingw-w64-i686-dev
for p in *.deb; do dpkg-deb -x "$p" ../root; done
cd ..
rm -rf packages lists cache root/usr/share
mkdir root/usr/share
ln -s /usr/share/wine /usr/share/mingw-w64 root/usr/share
system32=prefix/drive_c/windows/system32
mkdir -p "$system32" prefix/dosdevices
ln -s ../drive_c prefix/dosdevices/c:
ln -s / prefix/dosdevices/z:
echo disable > prefix/.update-timestamp
for name in ntdll kernel32 kernelbase msvcrt ucrtbase dbghelp version user32 gdi32 win32u advapi32 sechost imm32 shell32 shlwapi ole32 rpcrt4 setupapi combase shcore; do
	cp "root/usr/lib/i386-linux-gnu/wine/i386-windows/$name.dll" "$system32"
done
cp /usr/i686-w64-mingw32/lib/zlib1.dll "$system32"
