# A template. `.ci/release.py make` fills the names between @ signs and attaches the file to the release. To serve
# it with `brew install OWNER/lithos/lithos`, put the filled file into the repository OWNER/homebrew-lithos.
class Lithos < Formula
  desc "Local knowledge base that many AI agents share over MCP"
  homepage "@HOMEPAGE@"
  url "@SDIST_URL@"
  sha256 "@SDIST_SHA256@"
  license "MIT"

  depends_on "uv" => :build
  depends_on "python@3.13"

  # The lock file in the source archive has the hash of every package.
  def install
    ENV["UV_PROJECT_ENVIRONMENT"] = libexec
    ENV["UV_PYTHON_DOWNLOADS"] = "never"
    python = Formula["python@3.13"].opt_bin/"python3.13"
    system "uv", "sync", "--frozen", "--no-dev", "--no-editable", "--python", python
    bin.install_symlink libexec/"bin/lithos", libexec/"bin/lithos-server"
    generate_completions_from_executable(bin/"lithos", "completion", shells: [:bash, :zsh])
  end

  service do
    run [opt_bin/"lithos-server", "--data-dir", "~/Lithos", "serve", "--transport", "http"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/lithos-server --version")
    output = shell_output("#{bin}/lithos-server --data-dir #{testpath} doctor")
    assert_match "ok", output
  end
end
