# Lithos for Nix: `nix run github:lithos-server/lithos -- serve`, or the package `default` of this flake.
# It starts the published package with uv, since nixpkgs lacks some of its dependencies. `.ci/release.py version`
# writes the version.
{
  description = "A local knowledge server that many AI agents share";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      package = "lithos-server";
      version = "0.1.0";
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
    in
    {
      packages = forEach (pkgs:
        let
          # The wheels are built for other systems, where these libraries have a fixed place.
          libraries = pkgs.lib.makeLibraryPath [ pkgs.stdenv.cc.cc.lib pkgs.zlib ];
          program = name: pkgs.writeShellApplication {
            inherit name;
            runtimeInputs = [ pkgs.uv ];
            text = ''
              export UV_PYTHON=${pkgs.python313}/bin/python3.13 UV_PYTHON_DOWNLOADS=never
              ${pkgs.lib.optionalString pkgs.stdenv.isLinux ''
                export LD_LIBRARY_PATH="${libraries}''${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
              ''}
              exec uvx --from ${package}==${version} ${name} "$@"
            '';
          };
        in
        {
          default = pkgs.symlinkJoin {
            name = "${package}-${version}";
            paths = [ (program "lithos") (program package) ];
            meta.mainProgram = package;
          };
        });
    };
}
